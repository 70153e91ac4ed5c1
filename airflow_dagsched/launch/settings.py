"""Spark settings for one group of a plan, one function a cluster manager.

Only what the plan decides is set here; what the author sets on the dataflow wins over it.
"""

from __future__ import annotations

from airflow_dagsched.launch.escalation import Level
from airflow_dagsched.plan.values import Group

COMMON = {
    "spark.scheduler.mode": "FAIR",
    "spark.ui.showConsoleProgress": "false",
    # Else rows that are kept after a shuffle stay in its 200 partitions, and a write makes a file of each.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}
SHORT_S = 300.0
LIGHT_COMPILER = "-XX:TieredStopAtLevel=1"
"""Java's quick compiler alone. The thorough one takes a third of all processor time of an application of a few
minutes on a few cores, which does not run its code often enough to earn that back; a long one does.
"""
SMALLEST_HEAP_MB = 1024
"""Spark's own default: less only makes the garbage collector busy."""


def settings(group: Group, manager: str, level: Level) -> dict[str, str]:
    """Spark settings for ``group``; raises ``KeyError`` for a manager that is not in ``MANAGERS``."""
    return {**COMMON, **MANAGERS[manager](group, level)}


def _local(group: Group, level: Level) -> dict[str, str]:
    """One JVM is driver and executor: its heap holds both."""
    memory = max((container.memory_mb for container in group.containers), default=0)
    light = {"spark.driver.defaultJavaOptions": LIGHT_COMPILER} if group.time.compute < SHORT_S else {}
    return {"spark.driver.memory": f"{max(memory, SMALLEST_HEAP_MB) * level.memory_factor}m", **light}


def _standalone(group: Group, level: Level) -> dict[str, str]:
    """Equal executors, as many as containers. The padding is inside a container: Spark adds its own overhead
    to memory, which standalone workers do not account for.
    """
    first = group.containers[0]
    return {
        "spark.driver.memory": f"{group.driver.memory_mb}m",
        "spark.executor.cores": str(first.cores),
        "spark.executor.memory": f"{first.memory_mb * level.memory_factor}m",
        "spark.cores.max": str(first.cores * len(group.containers)),
    }


MANAGERS = {"local": _local, "standalone": _standalone}
