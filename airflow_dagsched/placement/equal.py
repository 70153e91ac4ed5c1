"""Containers of one shape for instances that stay: how large, how many on which worker, holding what.

w1 2 cores  [aa]                 One executor shape for all. Whatever fits in equal containers also fits in ones
w2 4 cores  [bb][bc]             so large that some worker, with as many of them as it holds, has no core left,
w3 8 cores  [cc][cd][dd][de]     and some worker no memory: so only such shapes are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.exact import BUDGET, Places, search
from airflow_dagsched.placement.packing.into import pack_into
from airflow_dagsched.placement.packing.pack import QUICK
from airflow_dagsched.placement.padding import memory_room, padded
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.room import rooms_of
from airflow_dagsched.placement.values import Amounts, Offer

SHAPES = 400
"""Tried at most, those that need the fewest containers first."""
COPIES = 64
"""Containers on one worker, at most."""


class Equal(Struct, frozen=True):
    """Offers of one shape, several a worker, and the offer of each instance."""

    offers: tuple[Offer, ...]
    places: Places


class _Whole(Struct, frozen=True):
    """All instances together."""

    instances: int
    cores: float
    memory_mb: float


def equal_containers(request: Request, budget: int = BUDGET) -> Equal | None:
    """A streaming request in containers of one shape; None if there is no way, or none was found in the time.

    Each shape is searched, then, where none was found so, packed: of many unlike instances the search sees too little.
    """
    whole = _Whole(request.instances, _total(request, 2), _total(request, 0))
    shapes = sorted((_fewest(request, whole, *shape), shape) for shape in _shapes(request))[:SHAPES]
    offered = list(_offered(request, whole, shapes))
    for inside in offered:
        places = search(inside, rooms_of(inside), budget // len(shapes))
        if places is not None:
            return Equal(inside.offers, places)
    for inside in offered if _sizes_alone_decide(request) else ():
        places = _packed(inside)
        if places is not None:
            return Equal(inside.offers, places)
    return None


def _offered(request: Request, whole: _Whole, shapes: Sequence[tuple[int, tuple[int, int]]]) -> Iterator[Request]:
    """The request with as many containers of each shape as the workers hold, where those may be enough."""
    for fewest, (cores, memory) in shapes:
        counts = [min(_copies(offer, cores, memory), whole.instances) for offer in request.offers]
        if sum(counts) >= fewest:
            yield replace(request, offers=_copied(request, counts, cores, memory))


def _sizes_alone_decide(request: Request) -> bool:
    """Whether an instance may be wherever there are cores and memory for it."""
    told = request.cap or request.beside or any(work.pinned for work in request.works)
    return not told and all(offer.disk_mb is None for offer in request.offers)


def _packed(request: Request) -> Places | None:
    """Containers as bins."""
    items = [work for work in request.works for _ in range(work.parallelism)]
    sizes = [(math.ceil(work.needs.cores), math.ceil(work.needs.memory_mb)) for work in items]
    rooms = [(int(cores), int(memory)) for memory, _, cores in rooms_of(request)]
    try:
        bins = pack_into(sizes, rooms, QUICK)
    except DoesNotFit:
        return None
    places: Places = [[] for _ in request.works]
    for box, item in sorted(((box, item) for box, held in enumerate(bins) for item in held), key=lambda one: one[1]):
        places[items[item].number].append(box)
    return places


def _shapes(request: Request) -> Iterator[tuple[int, int]]:
    """Cores, and memory with its padding, that hold the largest instance and leave some worker nothing of each."""
    least = padded(_largest(request), request.settings)
    copies = range(1, min(request.instances, COPIES) + 1)
    cores = {int((offer.cores or 0) // count) for offer in request.offers for count in copies}
    memories = {int((offer.memory_mb or 0) // count) for offer in request.offers for count in copies}
    for one in sorted(cores):
        if one >= least.cores - request.settings.cpu_padding:
            yield from ((one, memory) for memory in sorted(memories) if memory >= least.memory_mb)


def _largest(request: Request) -> Amounts:
    needs = [work.needs.values() for work in request.works]
    return Amounts(*(max(values) for values in zip(*needs, strict=True)))


def _total(request: Request, at: int) -> float:
    return sum(work.needs.values()[at] * work.parallelism for work in request.works)


def _fewest(request: Request, whole: _Whole, cores: int, memory: int) -> int:
    """Fewer containers cannot hold everything."""
    inside = max(1.0, memory_room(memory, request.settings))
    return max(math.ceil(whole.cores / cores), math.ceil(whole.memory_mb / inside))


def _copies(offer: Offer, cores: int, memory: int) -> int:
    """Containers of the shape that the worker has room for."""
    return min(int((offer.cores or 0) // cores), int((offer.memory_mb or 0) // memory))


def _copied(request: Request, counts: Sequence[int], cores: int, memory: int) -> tuple[Offer, ...]:
    shaped = (replace(offer, memory_mb=memory, cores=cores) for offer in request.offers)
    pairs = zip(shaped, counts, strict=True)
    return tuple(replace(one, id=f"{one.id}:{at}") for one, count in pairs for at in range(count))
