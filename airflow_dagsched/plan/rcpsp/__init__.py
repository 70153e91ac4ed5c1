"""Scheduling activities on renewable resources (RCPSP): the shortest schedule that can be found within a budget.

In: a ``Project``: durations, demands, order, capacities, whole numbers without a unit. Out: a ``Schedule``: when each
activity starts, the makespan, and a lower bound of it. ``schedule`` is the door: it builds a ``Network`` (``project``),
bounds it (``bounds``), and searches lists of activities (``search``, ``lists``) that two schemes read (``serial``,
``parallel``). What checks its schedules, and proves the best with a solver, is with the benchmarks.

Nothing here knows of steps, groups or Spark. May be called by ``costing`` (the order in which groups are launched), by
``grouping`` (the lists inside groups) and by benchmarks against published instances. It names ``model`` for errors and
graph orders alone.
"""
