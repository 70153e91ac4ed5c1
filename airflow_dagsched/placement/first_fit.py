"""First fit: as few containers as can be (seed: Twister2's FirstFitStreamingTaskScheduler).

First fit decreasing: instances by dominant share, the largest first, each to the first container with room. Workers
are opened in the order of how much of everything they could take, the largest first, and before others those with
room for more containers; few streaming instances are then searched through for fewer containers. The last one opened
is exchanged for the smallest that holds what it got, so the fit is tight. A container is no larger than the logical
container, where one is set; the padding comes on top.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.fewest import fewest
from airflow_dagsched.placement.first_room import FirstRoom
from airflow_dagsched.placement.greedy import Choose, greedy
from airflow_dagsched.placement.padding import held_at_once
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import SLACK, Room, Rooms, rooms_of
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.shares import by_share


def first_fit(request: Request) -> Places:
    """An offer for each instance. Raises ``DoesNotFit``."""
    limits = _logical(rooms_of(request), request.settings)
    rank = _opening(request, limits)
    ranked = replace(request, offers=tuple(request.offers[at] for at in rank))
    rooms = [limits[at] for at in rank]
    places = greedy(ranked, rooms, _decreasing(request, limits), _first())
    return [[rank[at] for at in found] for found in _tightened(ranked, rooms, fewest(ranked, rooms, places))]


def _logical(limits: Sequence[Rooms], settings: PlacementSettings) -> list[Rooms]:
    """The room in containers that are no larger than the logical one."""
    sizes = settings.container_memory_mb, settings.container_disk_mb, settings.container_cpu
    memory, disk, cores = (math.inf if size is None else size for size in sizes)
    return [(min(limit[0], memory), min(limit[1], disk), min(limit[2], cores)) for limit in limits]


def _opening(request: Request, limits: Sequence[Rooms]) -> list[int]:
    """Offers by the share of everything that each could take, the largest first; of equals, where there are more."""
    beside = Counter(offer.worker for offer in request.offers)
    needs = [sum(work.needs.values()[at] * work.parallelism for work in request.works) for at in range(3)]

    def takes(at: int) -> float:
        return min((has / need for has, need in zip(limits[at], needs, strict=True) if need), default=1.0)

    return sorted(range(len(limits)), key=lambda at: (-takes(at), -beside[request.offers[at].worker], at))


def _decreasing(request: Request, limits: Sequence[Rooms]) -> list[Work]:
    """By share; in batch level by level."""
    works = by_share(request, limits)
    return works if request.residency == "all" else sorted(works, key=lambda work: work.level)


def _first() -> Choose:
    found: FirstRoom | None = None
    before: tuple[Work, object, int] | None = None

    def choose(room: Room, work: Work, index: int) -> int | None:
        """Within a wave room only shrinks: an equal instance need not look before the last one's offer."""
        nonlocal found, before
        found = found or FirstRoom(room)
        same = before is not None and before[0] is work and before[1] is room.memory and not room.request.beside
        at = found.first(work, index, before[2] if before and same else 0)
        before = None if at is None else (work, room.memory, at)
        return at

    return choose


def _tightened(request: Request, limits: Sequence[Rooms], places: Places) -> Places:
    """The last offer in use exchanged for the smallest unused one that holds the same; of equals for the first."""
    last = max((at for found in places for at in found), default=0)
    if request.residency != "all" or request.beside or any(work.pinned for work in request.works):
        return places
    held = held_at_once(request, [(work, places[work.number].count(last)) for work in request.works]).values()
    for at in range(len(limits) - 1, last, -1):
        if all(need <= has + SLACK for need, has in zip(held, limits[at], strict=True)):
            first = limits.index(limits[at], last)
            return [[first if one == last else one for one in found] for found in places]
    return places
