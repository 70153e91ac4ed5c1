"""The driver program: runs the steps of one manifest in one Spark application.

In: the manifest's path and, from its environment, the launch task's secrets. Out: events, outputs, an exit code.

    main ── program ── engine.run_group ── run_step, repeat ── materialise
            (manifest, session, watch)     (a turn each)       (written, kept, run, handed over)

``program`` is the process: it refuses, is stopped, says the last word. ``engine`` is the way of a group,
``application`` what its turns share, ``failures`` whose fault it was. ``rehearse`` runs steps without it, for tests.

``main.py`` is what spark-submit runs. What it reaches imports no third-party package but PySpark and py4j. Nobody calls
this from outside, but for ``local.py`` (``rehearse``).
"""
