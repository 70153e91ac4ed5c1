"""Following a driver program, and telling Airflow what it says.

::

    lines of spark-submit ──> Follower ──feed, XComs──> Teller ──> Airflow        Standing: does this try still count?

Comes in: output lines with our markers, and the event file where some were lost. Goes out: the feed that mirrors end
by, log lines, a verdict on a driver that was lost. Nothing here waits for Airflow: its API server may be away for
minutes, and the driver must not stand still. ``lost_tries`` gives back a try that such an outage has cost. Called by
``runtime``; Airflow's plugin lists ``lost_tries``.
"""
