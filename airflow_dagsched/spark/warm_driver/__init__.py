"""The host of a warm application: a driver program that serves one run after another.

In: a folder with what it is, and runs over a socket. Out: of each run what a driver program of its own would give.

::

    Java (spark-submit) ── host: one thread, no Spark; waits, forks, watches
                            ├─ keeper: makes the session, cleans it between runs
                            └─ run: the driver program, in a process and a session of its own

``main.py`` is what spark-submit runs. ``host`` is the loop, ``keeper`` holds the application, ``clean`` is the list of
what a run may leave in it, ``health`` tells whether it still works, ``attached`` is a run's way into it, ``idle_mark``
tells others that it waits.
"""
