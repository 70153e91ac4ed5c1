"""What serves streaming alone: groups of steps that hold what they need from start to end.

In: a ``Problem`` in which some step streams. Out: a ``Strategy`` for the search among groupings: more candidates, which
are runs of an order cut where that costs least (``resident_groups``, ``segmentation``),
chains as one and cuts by what is left behind (``chains_and_levels``), a larger budget, a choice for runtimes that may
be other than told (``plausible``), and the steps that cannot share a group because all between them would not fit at
once (``separation``), for the lower bound.

Loaded by ``passes.select_groups`` once a step streams, by ``exact`` always, by nobody else: no batch plan loads it.
It names ``grouping``, ``costing`` and ``problem``.
"""
