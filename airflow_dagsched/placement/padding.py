"""What a container needs: the amounts its instances hold at once, and its padding, once.

streaming   the sum over its instances
batch       of the steps of one level as many as run side by side, the largest; of the levels the worst;
            disk is the sum where an ended instance keeps its disk (Spark's shuffle files)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Amounts, Offer


def padded(held: Amounts, settings: PlacementSettings) -> Amounts:
    """``held`` with the padding of a container: amounts; of memory a share where that is more (Spark's overhead)."""
    share = (settings.padding_percent or 0.0) / 100
    return Amounts(
        held.memory_mb + max(settings.ram_padding_mb, held.memory_mb * share),
        held.disk_mb + settings.disk_padding_mb,
        held.cores + settings.cpu_padding,
    )


def memory_room(offered: float, settings: PlacementSettings) -> float:
    """MiB that instances may hold of ``offered`` beside the padding."""
    share = (settings.padding_percent or 0.0) / 100
    return max(0.0, min(offered - settings.ram_padding_mb, offered / (1 + share)))


def rooms(offer: Offer, settings: PlacementSettings) -> tuple[float | None, float | None, float | None]:
    """Memory, disk and cores that instances may hold. Cores have no padding here: threads share them."""
    memory = None if offer.memory_mb is None else memory_room(offer.memory_mb, settings)
    disk = None if offer.disk_mb is None else max(0.0, offer.disk_mb - settings.disk_padding_mb)
    return memory, disk, offer.cores


def held_at_once(request: Request, counts: Sequence[tuple[Work, int]], cores: float | None = None) -> Amounts:
    """Without padding: what so many instances of each step hold; ``cores``: of the container, None: unknown."""
    if request.residency == "all":
        return _sum((work.needs, count) for work, count in counts)
    if not request.settings.barriers:
        peak = _peak(request.settings, counts, cores)
        return Amounts(peak.memory_mb, sum(work.needs.disk_mb * count for work, count in counts), peak.cores)
    by_level: dict[int, list[tuple[Work, int]]] = {}
    for work, count in counts:
        by_level.setdefault(work.level, []).append((work, count))
    return _most(_peak(request.settings, found, cores) for found in by_level.values())


def _most(peaks: Iterable[Amounts]) -> Amounts:
    return Amounts(*(max(values) for values in zip(*(peak.values() for peak in peaks), strict=True)))


def _sum(needs: Iterable[tuple[Amounts, int]]) -> Amounts:
    memory = disk = cores = 0.0
    for one, count in needs:
        memory += one.memory_mb * count
        disk += one.disk_mb * count
        cores += one.cores * count
    return Amounts(memory, disk, cores)


def _peak(settings: PlacementSettings, counts: Sequence[tuple[Work, int]], cores: float | None) -> Amounts:
    """The most of each dimension that runs at once: as many instances as the cores allow, else as many steps."""
    if cores is None:
        most = sum(sorted((count for _, count in counts), reverse=True)[: settings.steps_at_once])
    else:
        most = max(1, int(cores // min(work.needs.cores for work, _ in counts)))
    memory, disk, used = (
        _largest([(work.needs.values()[at], count) for work, count in counts], most) for at in range(3)
    )
    return Amounts(memory, disk, used if cores is None else min(cores, used))


def _largest(amounts: Sequence[tuple[float, int]], most: int) -> float:
    """Sum of the ``most`` largest."""
    held, left = 0.0, most
    for amount, count in sorted(amounts, reverse=True):
        held += amount * min(left, count)
        left -= min(left, count)
    return held
