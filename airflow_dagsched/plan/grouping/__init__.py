"""Which steps run together as one Spark application, and which channels are cut between them.

In: a ``Problem`` and the ``Evaluator`` that says what a grouping of it would take. Out: a ``Selection``: the best
grouping found, what it was compared with, and the reason for each group and each cut. Without a cluster: the coarsest
groups, for which a graph and its rules are enough (``find_groups``: what a parse of a DAG file needs).

Groupings come from the coarsest one by cutting (``coarsest``, ``stages``, ``limits``), from what ``proposals`` makes of
others, or by changing the best one a little (``local_search``). ``candidates`` is the search, in the order in which
these are looked at. Of what ends about as soon as the best (``front``) ``fewest_applications`` takes the fewest groups.

May be called by ``resident``, ``passes``, ``exact``; ``find_groups`` by the provider, too. It names ``costing`` and
``problem``, and nothing that serves streaming alone.
"""
