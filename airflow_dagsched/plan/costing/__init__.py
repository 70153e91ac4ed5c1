"""What a grouping of the steps would take: the cost model, and a bound that no plan can beat.

In: a ``Problem``, and for each step the group it is in. Out: an ``EvaluatedGrouping``: for each group the executors it
asks for (``executor_shape``), how long it computes in them (``list_schedule``), what it reads and writes (``traffic``),
when it starts and on which workers (``timeline``), and in which order groups that wait for room are best launched
(``launch_order``). ``bound_makespan`` says what no grouping can do with less than.

``Evaluator(problem)`` is the door: it alone keeps what evaluations look up twice. All else are functions of values.

May be called by ``grouping``, ``resident``, ``passes``, ``exact``. It names ``problem``, ``placement.containers``
and, for the order of launches, ``rcpsp``.
"""
