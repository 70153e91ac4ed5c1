"""Containers of one shape for instances that stay: how large, how many on which worker, holding what.

w1 2 cores  [aa]                 One executor shape for all. Whatever fits in equal containers also fits in ones
w2 4 cores  [bb][bc]             so large that some worker, with as many of them as it holds, has no core left,
w3 8 cores  [cc][cd][dd][de]     and some worker no memory: so only such shapes are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.placement.containers.packing.bin_completion import pack_into
from airflow_dagsched.placement.containers.requirements import add_padding
from airflow_dagsched.placement.containers.sizing import compute_usable_memory
from airflow_dagsched.placement.exhaustive_search import BUDGET, Placement, search_placement
from airflow_dagsched.placement.offer_capacity import compute_limits
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.values import Amounts, Offer

MAX_SHAPES = 400
"""Tried at most, those that need the fewest containers first."""
MAX_COPIES = 64
"""Containers on one worker, at most."""


class EqualContainers(Struct, frozen=True):
    """Offers of one shape, several a worker, and the offer of each instance."""

    offers: tuple[Offer, ...]
    places: Placement


class _WholeDemand(Struct, frozen=True):
    """All instances together."""

    instances: int
    cores: float
    memory_mb: float


def find_equal_containers(request: Request, budget: int = BUDGET) -> EqualContainers | None:
    """A streaming request in containers of one shape; None if there is no way, or none was found in the time.

    Each shape is searched, then, where none was found so, packed: of many unlike instances the search sees too little.
    """
    whole = _WholeDemand(request.instance_count, request.sum_needs(2), request.sum_needs(0))
    # Fewest containers first: each is a JVM with a padding of its own.
    shapes = sorted((_count_fewest(request, whole, *shape), shape) for shape in _list_shapes(request))[:MAX_SHAPES]
    offered = list(_offer_shapes(request, whole, shapes))
    # An equal part of the budget for each shape: a hopeless one among the first would take all of it.
    searched = ((each, search_placement(each, compute_limits(each), budget // len(shapes))) for each in offered)
    # Packing knows sizes alone: no caps or pins, and no disk that containers of one worker share.
    packed = ((each, _pack_instances(each)) for each in offered if _is_decided_by_size(request))
    found = ((each.offers, places) for each, places in chain(searched, packed) if places is not None)
    return next((EqualContainers(offers, places) for offers, places in found), None)


def _offer_shapes(
    request: Request, whole: _WholeDemand, shapes: Sequence[tuple[int, tuple[int, int]]]
) -> Iterator[Request]:
    """The request with as many containers of each shape as the workers hold, where those may be enough."""
    for fewest, (cores, memory) in shapes:
        # No more containers than there are instances: the rest would be empty.
        counts = [min(count_copies(offer, cores, memory), whole.instances) for offer in request.offers]
        if sum(counts) >= fewest:
            yield replace(request, offers=_copy_offers(request, counts, cores, memory))


def _is_decided_by_size(request: Request) -> bool:
    """Whether an instance may be wherever there are cores and memory for it."""
    restricted = request.is_capped or request.beside or any(step.pinned for step in request.steps)
    return not restricted and all(offer.disk_mb is None for offer in request.offers)


def _pack_instances(request: Request) -> Placement | None:
    """Containers as bins."""
    items = [step for step, _ in request.list_instances()]
    # Items rounded up and bins down: whole numbers never promise what is not there.
    sizes = [(math.ceil(step.needs.cores), math.ceil(step.needs.memory_mb)) for step in items]
    limits = [(int(cores), int(memory)) for memory, _, cores in compute_limits(request)]
    bins = pack_into(sizes, limits)
    if bins is None:
        return None
    places: Placement = [[] for _ in request.steps]
    # Instances of a step go to containers in rising order, as everywhere else.
    for container, item in sorted(
        ((container, item) for container, held in enumerate(bins) for item in held), key=lambda pair: pair[1]
    ):
        places[items[item].number].append(container)
    return places


def _list_shapes(request: Request) -> Iterator[tuple[int, int]]:
    """Cores, and memory with its padding, that hold the largest instance and leave some worker nothing of each."""
    least = add_padding(_find_largest_needs(request), request.settings)
    # A worker's amount divided by 1, 2, 3 ... leaves it nothing. Any other shape could grow to one of these and still
    # fit as often, so none is lost.
    copies = range(1, min(request.instance_count, MAX_COPIES) + 1)
    cores = {int((offer.cores or 0) // count) for offer in request.offers for count in copies}
    memories = {int((offer.memory_mb or 0) // count) for offer in request.offers for count in copies}
    for wide in sorted(cores):
        # ``add_padding`` counted the reported cores in, which are never held against a worker.
        if wide >= least.cores - request.settings.cpu_padding:
            yield from ((wide, memory) for memory in sorted(memories) if memory >= least.memory_mb)


def list_dominating_shapes(request: Request) -> list[tuple[int, int]]:
    """Cores and memory of containers, no two of which each worker holds equally often; the largest first."""
    copies = {
        tuple(min(count_copies(offer, *shape), request.instance_count) for offer in request.offers)
        for shape in _list_shapes(request)
    }
    return sorted((_grow_shape(request.offers, counts) for counts in copies if any(counts)), reverse=True)


def _grow_shape(offers: Sequence[Offer], counts: Sequence[int]) -> tuple[int, int]:
    """The largest container of which each worker still holds so many."""
    used = [(offer, count) for offer, count in zip(offers, counts, strict=True) if count]
    return (
        min(int((offer.cores or 0) // count) for offer, count in used),
        min(int((offer.memory_mb or 0) // count) for offer, count in used),
    )


def _find_largest_needs(request: Request) -> Amounts:
    needs = [step.needs.list_values() for step in request.steps]
    return Amounts(*(max(values) for values in zip(*needs, strict=True)))


def _count_fewest(request: Request, whole: _WholeDemand, cores: int, memory: int) -> int:
    """Fewer containers cannot hold everything."""
    settings = request.settings
    # A shape that its own padding fills would divide by zero.
    usable = max(1.0, compute_usable_memory(memory, settings.ram_padding_mb, settings.padding_fraction))
    return max(math.ceil(whole.cores / cores), math.ceil(whole.memory_mb / usable))


def count_copies(offer: Offer, cores: int, memory: int) -> int:
    """Containers of the shape that the worker has room for."""
    return min(int((offer.cores or 0) // cores), int((offer.memory_mb or 0) // memory))


def _copy_offers(request: Request, counts: Sequence[int], cores: int, memory: int) -> tuple[Offer, ...]:
    shaped = (replace(offer, memory_mb=memory, cores=cores) for offer in request.offers)
    pairs = zip(shaped, counts, strict=True)
    return tuple(replace(offer, id=f"{offer.id}:{at}") for offer, count in pairs for at in range(count))
