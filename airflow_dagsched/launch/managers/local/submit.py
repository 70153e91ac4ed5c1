"""A group as a local application: one JVM is driver and executor."""

from __future__ import annotations

from airflow_dagsched.launch.managers.executors import Submission
from airflow_dagsched.plan.plan_types import Group

SMALLEST_HEAP_MB = 1024
"""Spark's own default: less only makes the garbage collector busy."""
WORKERS = "spark.python.daemon.module"
"""What forks Python workers: ours takes less of each executor's start."""


def make_local_submission(group: Group, memory_factor: int) -> Submission:
    """Its heap holds what the one container needs."""
    memory = max((container.memory_mb for container in group.containers), default=0)
    return Submission(
        {
            "spark.driver.memory": f"{max(memory, SMALLEST_HEAP_MB) * memory_factor}m",
            WORKERS: "airflow_dagsched.spark.worker_daemon",
        }
    )
