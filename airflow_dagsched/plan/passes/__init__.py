"""The passes of a plan, one file each, in the order of ``planner.PASSES``; all of one signature, ``Draft -> Draft``.

In: a ``Draft``: the problem as it was given, what remains of it, the plan so far, and what earlier passes decided. Out:
a ``Draft`` with more. A pass knows nothing of another but what the draft says: each can be run alone.

Files that are no pass serve one: ``exclusions`` (``prune_inputs``), the room ``containers``, ``written_rows`` and
``compare_placed`` (``apply_policy``); or both that change what is placed: ``assignment`` and
``recompute_times`` (``apply_policy``, ``trim_instances``).

May be called by the planner, and by ``exact``, which puts a pass of its own in the place of ``select_groups``. It names
``grouping``, ``costing``, ``pruning``, ``placement``, and ``resident`` where a step streams.
"""
