"""What a container of a request needs: the amounts its instances hold at once, and its padding, once.

streaming   the sum over its instances
batch       of the steps of one level as many as run side by side, the largest; of the levels the worst;
            disk is the sum where an ended instance keeps its disk (Spark's shuffle files)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from airflow_dagsched.placement.containers.sizing import (
    compute_padding,
    compute_usable_memory,
    count_at_once,
    sum_largest,
)
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Amounts, Limit, Offer, sum_amounts


def add_padding(held: Amounts, settings: PlacementSettings) -> Amounts:
    """``held`` with the padding of a container: amounts; of memory a share where that is more (Spark's overhead)."""
    # Once a container: Spark's overhead (``spark.executor.memoryOverhead``) is the process's, not the task's.
    return Amounts(
        held.memory_mb + compute_padding(held.memory_mb, settings.ram_padding_mb, settings.padding_fraction),
        held.disk_mb + settings.disk_padding_mb,
        held.cores + settings.cpu_padding,
    )


def compute_usable(offer: Offer, settings: PlacementSettings) -> Limit:
    """Memory, disk and cores of an offer that instances may hold."""
    least, fraction = settings.ram_padding_mb, settings.padding_fraction
    return (
        math.inf if offer.memory_mb is None else compute_usable_memory(offer.memory_mb, least, fraction),
        math.inf if offer.disk_mb is None else max(0.0, offer.disk_mb - settings.disk_padding_mb),
        # No padding of cores: its threads share them with the instances, Spark's overhead is memory alone.
        math.inf if offer.cores is None else offer.cores,
    )


def compute_held_at_once(
    request: Request, counts: Sequence[tuple[StepRequest, int]], cores: float | None = None
) -> Amounts:
    """What so many instances of each step hold, without padding; ``cores``: the container's, None: unknown."""
    if request.residency == "all":
        return sum_amounts(step.needs * count for step, count in counts)
    # Without barriers steps of all levels may run side by side: the peak is over all of them.
    if not request.settings.barriers:
        peak = _compute_peak(request.settings, counts, cores)
        # Shuffle files stay until the application ends: disk adds up, where memory comes back.
        return Amounts(peak.memory_mb, sum(step.needs.disk_mb * count for step, count in counts), peak.cores)
    by_level: dict[int, list[tuple[StepRequest, int]]] = {}
    for step, count in counts:
        by_level.setdefault(step.level, []).append((step, count))
    return _find_maxima(_compute_peak(request.settings, level_counts, cores) for level_counts in by_level.values())


def _find_maxima(peaks: Iterable[Amounts]) -> Amounts:
    return Amounts(*(max(values) for values in zip(*(peak.list_values() for peak in peaks), strict=True)))


def _compute_peak(
    settings: PlacementSettings, counts: Sequence[tuple[StepRequest, int]], cores: float | None
) -> Amounts:
    """The most of each dimension that runs at once: as many instances as the cores allow, else as many steps."""
    if cores is None:
        most = sum(sorted((count for _, count in counts), reverse=True)[: settings.steps_at_once])
    else:
        # By the narrowest step: more instances than that cannot run at once, whichever they are.
        most = count_at_once(cores, min(step.needs.cores for step, _ in counts))
    memory, disk, used = (
        sum_largest([(step.needs.list_values()[at], count) for step, count in counts], most) for at in range(3)
    )
    return Amounts(memory, disk, used if cores is None else min(cores, used))
