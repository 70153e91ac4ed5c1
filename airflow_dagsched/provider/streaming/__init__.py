"""The launch task of a stream: starts its driver as a process that outlives the task, then follows it from afar.

::

    prepare_epoch ── private folder ──> request ── record ──> start (a process of its own) ──> started ──> deferred
                                                                ^                                            │
                                                                └────────── lost ── poll, every 5 s <────────┘

What is to be done is advised by ``switch``; here is how a task and a trigger of Airflow do it. A task that is run
again, or a triggerer that comes back, finds the epoch in the log and its driver by the lease.
"""
