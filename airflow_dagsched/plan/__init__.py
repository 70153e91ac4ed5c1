"""From a dataflow and a cluster to a plan: groups of steps, their containers, hosts, times, and the reason for each.

In: a ``Dataflow``, a ``Cluster``, ``Settings``, and what is asked for one ``Run``. Out: a ``Plan``, a frozen value that
can be printed, checked, compared and launched. All of it is pure: equal arguments give equal plans.

Who may name whom, from what is given to what is made of it::

    settings, plan_types, needs, reasons <── report <── pruning <── problem <── costing <── grouping
                                                grouping <── resident <── passes <── planner <── exact

Beside this line: ``rcpsp`` knows projects and schedules alone and serves ``costing``; ``checking`` shares no code with
the planner; ``replan`` plans anew part-way through a run, ``simulate`` plays a plan. ``planner.plan`` is the door for
everybody outside.
"""
