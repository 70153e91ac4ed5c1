"""What an instance needs and what a container has beside its instances: the one definition, in plain numbers.

    container  [ aaaa | bbbb | padding ]     memory of as many instances as run at once, and the padding, once

The planner counts in whole MiB and rounds up what comes from here; the policies count in fractions.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TypeVar

from airflow_dagsched.model.dataflow import Step

Number = TypeVar("Number", int, float)


def resolve_needs(step: Step, memory_mb: Number, disk_mb: Number) -> tuple[int, Number, Number]:
    """Cores, MiB of memory and MiB of disk of one instance; zero means not declared: then the defaults count."""
    return step.cores, step.memory_mb or memory_mb, step.disk_mb or disk_mb


def resolve_runtime(declared_s: float, default_s: float) -> float:
    """Seconds of one instance or task; zero means not declared."""
    return declared_s or default_s


def compute_padding(memory_mb: float, least_mb: float, fraction: float) -> float:
    """MiB on top of what a container's instances hold, once: a share of it, and no less than ``least_mb``.

    Spark's ``spark.executor.memoryOverhead`` has the same two terms.
    """
    return max(least_mb, memory_mb * fraction)


def compute_usable_memory(offered_mb: float, least_mb: float, fraction: float) -> float:
    """MiB that instances may hold of ``offered_mb`` beside the padding: the other way round."""
    # The largest m with m + max(least, m x fraction) within the offer: each term by itself bounds it.
    return max(0.0, min(offered_mb - least_mb, offered_mb / (1 + fraction)))


def count_at_once(cores: float, least_cores: float) -> int:
    """Instances that a container's cores let run at once, at most; one always may."""
    return max(1, int(cores // least_cores))


def sum_largest(amounts: Iterable[tuple[Number, int]], count: int) -> Number:
    """The sum of the ``count`` largest of (amount, how many of it): whichever instances run at once, no more."""
    total: Number = 0
    # ``count`` kinds are enough where each has a copy at least.
    for amount, copies in heapq.nlargest(count, amounts):
        taken = min(count, copies)
        total, count = total + taken * amount, count - taken
    return total
