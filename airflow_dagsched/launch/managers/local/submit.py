"""A group as a local application: one JVM is driver and executor."""

from __future__ import annotations

from airflow_dagsched.launch.managers.executors import Submission
from airflow_dagsched.plan.plan_types import Group

SMALLEST_HEAP_MB = 1024
"""Spark's own default: less only makes the garbage collector busy."""
SHORT_S = 300.0
LIGHT_COMPILER = "-XX:TieredStopAtLevel=1"
"""Java's quick compiler alone. The thorough one takes a third of all processor time of an application of a few
minutes on a few cores, which does not run its code often enough to earn that back; a long one does.
"""


def make_local_submission(group: Group, memory_factor: int) -> Submission:
    """Its heap holds what the one container needs."""
    memory = max((container.memory_mb for container in group.containers), default=0)
    light = {"spark.driver.defaultJavaOptions": LIGHT_COMPILER} if group.time.compute < SHORT_S else {}
    return Submission({"spark.driver.memory": f"{max(memory, SMALLEST_HEAP_MB) * memory_factor}m", **light})
