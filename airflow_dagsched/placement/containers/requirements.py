"""What a container of a request needs: the amounts its instances hold at once, and its padding, once.

streaming   the sum over its instances
batch       of the steps of one level as many as run side by side, the largest; of the levels the worst;
            disk is the sum where an ended instance keeps its disk (Spark's shuffle files)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_dagsched.placement.containers.sizing import (
    compute_padding,
    compute_usable_memory,
    count_at_once,
    sum_largest,
)
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Amounts, Offer


def add_padding(held: Amounts, settings: PlacementSettings) -> Amounts:
    """``held`` with the padding of a container: amounts; of memory a share where that is more (Spark's overhead)."""
    return Amounts(
        held.memory_mb + compute_padding(held.memory_mb, settings.ram_padding_mb, settings.padding_fraction),
        held.disk_mb + settings.disk_padding_mb,
        held.cores + settings.cpu_padding,
    )


def compute_usable(offer: Offer, settings: PlacementSettings) -> tuple[float | None, float | None, float | None]:
    """Memory, disk and cores that instances may hold. Cores have no padding here: threads share them."""
    least, fraction = settings.ram_padding_mb, settings.padding_fraction
    memory = None if offer.memory_mb is None else compute_usable_memory(offer.memory_mb, least, fraction)
    disk = None if offer.disk_mb is None else max(0.0, offer.disk_mb - settings.disk_padding_mb)
    # Threads of padding share the cores with instances: Spark's overhead is memory alone.
    return memory, disk, offer.cores


def compute_held_at_once(
    request: Request, counts: Sequence[tuple[StepRequest, int]], cores: float | None = None
) -> Amounts:
    """What so many instances of each step hold, without padding; ``cores``: the container's, None: unknown."""
    if request.residency == "all":
        return _sum_amounts((step.needs, count) for step, count in counts)
    if not request.settings.barriers:
        peak = _compute_peak(request.settings, counts, cores)
        return Amounts(peak.memory_mb, sum(step.needs.disk_mb * count for step, count in counts), peak.cores)
    by_level: dict[int, list[tuple[StepRequest, int]]] = {}
    for step, count in counts:
        by_level.setdefault(step.level, []).append((step, count))
    return _find_maxima(_compute_peak(request.settings, level_counts, cores) for level_counts in by_level.values())


def _find_maxima(peaks: Iterable[Amounts]) -> Amounts:
    return Amounts(*(max(values) for values in zip(*(peak.list_values() for peak in peaks), strict=True)))


def _sum_amounts(needs: Iterable[tuple[Amounts, int]]) -> Amounts:
    memory = disk = cores = 0.0
    for amounts, count in needs:
        memory += amounts.memory_mb * count
        disk += amounts.disk_mb * count
        cores += amounts.cores * count
    return Amounts(memory, disk, cores)


def _compute_peak(
    settings: PlacementSettings, counts: Sequence[tuple[StepRequest, int]], cores: float | None
) -> Amounts:
    """The most of each dimension that runs at once: as many instances as the cores allow, else as many steps."""
    if cores is None:
        most = sum(sorted((count for _, count in counts), reverse=True)[: settings.steps_at_once])
    else:
        most = count_at_once(cores, min(step.needs.cores for step, _ in counts))
    memory, disk, used = (
        sum_largest([(step.needs.list_values()[at], count) for step, count in counts], most) for at in range(3)
    )
    return Amounts(memory, disk, used if cores is None else min(cores, used))
