"""What is refused before anything is placed, and how: each with needed and available, dimension by dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import SLACK, Rooms
from airflow_dagsched.placement.values import DIMENSIONS, UNITS


def check_capacity(request: Request, limits: Sequence[Rooms]) -> None:
    """Raises ``DoesNotFit`` for the first thing that no placement could do; ``limits``: room in each offer."""
    for refusal in _refusals(request, limits):
        raise refusal


def _refusals(request: Request, limits: Sequence[Rooms]) -> Iterator[DoesNotFit]:
    if not request.offers and request.works:
        yield DoesNotFit(f"dataflow {request.name!r}", "workers", 1, 0, "workers")
    yield from _over_cap(request)
    open_to = _open_to(request, limits)
    most = {allowed: [max(values) for values in zip(*found, strict=True)] for allowed, found in open_to.items()}
    for work in request.works:
        for allowed in sorted({request.allowed(work, index) for index in _indices(request, work)}, key=sorted):
            yield from _alone(work, open_to[allowed], most[allowed])
    yield from _together(request, limits)


def _over_cap(request: Request) -> Iterator[DoesNotFit]:
    """As many instances as caps allow: of all steps if they are resident, else of each."""
    if request.cap is None:
        return
    room = request.cap * len(request.offers)
    if request.residency == "all":
        counts = [(f"dataflow {request.name!r}", request.instances)]
    else:
        counts = [(f"step {work.step!r}", work.parallelism) for work in request.works]
    for what, count in counts:
        if count > room:
            yield DoesNotFit(what, f"cap of {request.cap} per container", count, room, "instances")


def _indices(request: Request, work: Work) -> Sequence[int]:
    """Of the instances that may differ in where they may be."""
    return range(work.parallelism) if request.beside else range(1)


def _open_to(request: Request, limits: Sequence[Rooms]) -> dict[frozenset[str], list[Rooms]]:
    """For each set of workers that some instance is confined to, the room in their offers."""
    sets = {request.allowed(work, index) for work in request.works for index in _indices(request, work)}
    pairs = list(zip(request.offers, limits, strict=True))
    return {allowed: [limit for offer, limit in pairs if not allowed or offer.worker in allowed] for allowed in sets}


def _alone(work: Work, open_to: Sequence[Rooms], most: Sequence[float]) -> Iterator[DoesNotFit]:
    """An instance that is larger than any container it may be in; ``most``: of each dimension in one of them."""
    if not open_to:
        yield DoesNotFit(f"step {work.step!r}", "workers it may be on", 1, 0, "workers")
    for at, (need, has) in enumerate(zip(work.needs.values(), most, strict=True)):
        if need > has + SLACK:
            yield DoesNotFit(f"step {work.step!r}", f"{DIMENSIONS[at]} of an instance", need, has, UNITS[at])
    if not any(_holds(work, limit) for limit in open_to):
        yield _no_single_offer(work, open_to)


def _holds(work: Work, limit: Rooms) -> bool:
    return all(need <= has + SLACK for need, has in zip(work.needs.values(), limit, strict=True))


def _no_single_offer(work: Work, limits: Sequence[Rooms]) -> DoesNotFit:
    """Each dimension fits somewhere, but all of them nowhere: the most memory where the cores are enough."""
    wide = [limit[0] for limit in limits if limit[2] + SLACK >= work.needs.cores]
    if max(wide) + SLACK < work.needs.memory_mb:
        what = f"memory of an instance on workers with {work.needs.cores:g} cores"
        return DoesNotFit(f"step {work.step!r}", what, work.needs.memory_mb, max(wide), "MiB")
    roomy = [limit[1] for limit in limits if limit[2] >= work.needs.cores and limit[0] >= work.needs.memory_mb]
    what = "disk of an instance on workers with the cores and memory"
    return DoesNotFit(f"step {work.step!r}", what, work.needs.disk_mb, max(roomy, default=0.0), "MiB")


def _together(request: Request, limits: Sequence[Rooms]) -> Iterator[DoesNotFit]:
    """All that has to be held at the same time, against all there is."""
    available = _available(request, limits)
    for at in _kept(request):
        need = sum(work.needs.values()[at] * work.parallelism for work in request.works)
        if need > available[at] * (1 + SLACK):
            what = f"{DIMENSIONS[at]} of all its instances"
            yield DoesNotFit(f"dataflow {request.name!r}", what, need, available[at], UNITS[at])


def _kept(request: Request) -> tuple[int, ...]:
    """Dimensions that stay taken to the end."""
    if request.residency == "all":
        return (0, 1, 2)
    return () if request.settings.barriers else (1,)


def _available(request: Request, limits: Sequence[Rooms]) -> Rooms:
    disks = {offer.worker: limit[1] for offer, limit in zip(request.offers, limits, strict=True)}
    return math.fsum(limit[0] for limit in limits), math.fsum(disks.values()), math.fsum(limit[2] for limit in limits)


def no_room(request: Request, work: Work, limits: Sequence[Rooms], free: Sequence[Rooms]) -> DoesNotFit:
    """Sums fit, but no way was found to place every instance; ``free``: what was left when ``work`` got no room."""
    holes = [max((left[at] for left in free), default=0.0) for at in range(3)]
    for at, need in enumerate(work.needs.values()):
        if need > holes[at] + SLACK:
            what = f"{DIMENSIONS[at]} of an instance beside what is placed"
            return DoesNotFit(f"step {work.step!r}", what, need, max(0.0, holes[at]), UNITS[at])
    what = f"containers with room for an instance beside what is placed on {len(limits)}"
    return DoesNotFit(f"step {work.step!r}", what, 1, 0, "containers")
