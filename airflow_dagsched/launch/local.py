"""A group as a local application: one JVM is driver and executor."""

from __future__ import annotations

from airflow_dagsched.launch.escalation import Level
from airflow_dagsched.launch.executors import Submission
from airflow_dagsched.plan.values import Group

SMALLEST_HEAP_MB = 1024
"""Spark's own default: less only makes the garbage collector busy."""


def local(group: Group, level: Level) -> Submission:
    """Its heap holds what the one container needs."""
    memory = max((container.memory_mb for container in group.containers), default=0)
    return Submission({"spark.driver.memory": f"{max(memory, SMALLEST_HEAP_MB) * level.memory_factor}m"})
