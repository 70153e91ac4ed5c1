"""A stream in Airflow: what makes its runs, and the launch task of each.

::

    DAG file, edited ── parse ──> StreamEpochs ── EpochTrigger ──> a run, where the log has no epoch of this code
                                                                   │
    prepare_epoch ── private folder ──> request ── record ──> start (a process of its own) ──> started ──> deferred
                                                                ^                                            │
                                                                └────────── lost ── poll, every 5 s <────────┘

The launch task starts the stream's driver as a process that outlives the task, then follows it from afar. What is to be
done is advised by ``switch``; here is how a task and a trigger of Airflow do it. A task that is run again, or a
triggerer that comes back, finds the epoch in the log and its driver by the lease.
"""
