"""Settings that the application of every stream is started with, but for what its author says."""

from __future__ import annotations

from collections.abc import Mapping

REMEMBERED = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "5000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.streaming.ui.retainedQueries": "5",
    # Spark keeps each file that a batch has listed, which no other batch lists again, until there are 250 MB of them.
    "spark.sql.hive.filesourcePartitionFileCacheSize": str(16 * 2**20),
}
"""What Spark remembers of batches and queries that are over: by default it goes on growing for days. Its pages show the
last minutes; a stream's own folder tells of all the time before.
"""
FOR_WEEKS: Mapping[str, str] = {
    # Each epoch is a pool of its own: a graph that catches up leaves the other one its share.
    "spark.scheduler.mode": "FAIR",
    # A stream that lets go of executors between two batches would give up the workers its state is on.
    "spark.dynamicAllocation.enabled": "false",
    # The output is kept short: a hundred lines a batch would soon push out those that somebody looks for.
    "spark.log.level": "WARN",
    **REMEMBERED,
}
