"""The executors of one application: how many, of which one shape, and how many on each worker."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct, field

from airflow_dagsched.launch.protocol.executor_settings import CORES, INSTANCES, MEMORY, OVERHEAD
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.passes.pin_hosts import count_containers
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.settings import DEFAULTS, Settings

SMALLEST_HEAP_MB = 450
"""Spark refuses to start an executor with less (``spark.executor.memory`` below 471859200 bytes)."""

ROUNDING = 1e-9
"""4400 / 1.1 is not 4000 to a computer."""


class Executors(Struct, frozen=True):
    """What a group asks of its cluster manager."""

    on: Mapping[str, int]
    """Worker -> executors it is to hold."""
    cores: int
    memory_mb: int
    """Of one executor, with what lies beside its heap."""
    settings: Settings = DEFAULTS
    """Those of the plan: its padding is undone as it was done."""

    @property
    def count(self) -> int:
        """How many there are on all workers."""
        return sum(self.on.values())


class Submission(Struct, frozen=True):
    """What spark-submit is told of a group."""

    conf: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    """Spark setting -> text of the file that it is to name."""


def size_executors(group: Group, cluster: Cluster, memory_factor: int = 1, settings: Settings = DEFAULTS) -> Executors:
    """One executor for each container with an instance, with ``memory_factor`` times its memory: more after a failure.

    Never more than the smallest of the chosen workers can ever hold: an executor that fits nowhere is waited
    for without end.
    """
    first, on = group.executors[0], count_containers(group)
    there = {worker.id: worker.memory_mb for worker in cluster.workers}
    most = min(there[worker] // count for worker, count in on.items())
    wanted = max(first.memory_mb * memory_factor, SMALLEST_HEAP_MB)
    return Executors(on, first.cores, max(first.memory_mb, min(wanted, most)), settings)


def split_memory(memory_mb: int, settings: Settings) -> tuple[int, int]:
    """MiB of an executor's heap, and beside it, where the manager counts both: the planner's padding undone."""
    share = math.floor(memory_mb / (1 + settings.padding_fraction) + ROUNDING)
    # Padding is a share of the heap, or a least amount if that is more: so the heap is the less that either leaves.
    heap = max(SMALLEST_HEAP_MB, min(share, memory_mb - settings.padding_min_mb))
    return heap, max(settings.padding_min_mb, memory_mb - heap)


def name_sizes(asked: Executors) -> dict[str, str]:
    """Spark's settings for ``asked``, where the manager counts an executor's heap and what lies beside it."""
    heap, overhead = split_memory(asked.memory_mb, asked.settings)
    sizes = {INSTANCES: asked.count, CORES: asked.cores, MEMORY: f"{heap}m", OVERHEAD: f"{overhead}m"}
    return {name: str(size) for name, size in sizes.items()}
