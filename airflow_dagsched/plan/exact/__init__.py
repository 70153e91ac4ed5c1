"""The exact mode: for small dataflows the optimum, or what a solver proves and finds within a budget.

In: what ``plan`` takes. Out: a ``Plan`` with a better bound, and maybe with better groups. Up to eight units
everything is tried (``enumeration``); for more, a relaxation of the planner's model is solved (``model``), and for
resident steps a bound by phases comes first (``phases``). ``mode`` puts this in the place of the pass that selects
groups; all other passes are the planner's own.

May be called by the command lines (``--exact``, ``tune``): never at a parse, never at a launch. ``model`` needs the
extra ``[exact]``, loaded when it is used. It names ``grouping``, ``resident``, ``costing`` and ``passes``.
"""
