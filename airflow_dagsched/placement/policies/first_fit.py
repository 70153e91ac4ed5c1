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

from airflow_dagsched.placement.containers.minimise_containers import minimise_containers
from airflow_dagsched.placement.containers.requirements import compute_held_at_once
from airflow_dagsched.placement.exhaustive_search import Placement
from airflow_dagsched.placement.first_offer_index import FirstOfferIndex
from airflow_dagsched.placement.offer_capacity import OfferCapacity, compute_limits
from airflow_dagsched.placement.policies.greedy import ChooseOffer, place_greedily
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.shares import order_by_share
from airflow_dagsched.placement.values import Limit


def place_first_fit(request: Request) -> Placement:
    """An offer for each instance. Raises ``DoesNotFit``."""
    limits = _limit_to_logical(compute_limits(request), request.settings)
    rank = _order_offers(request, limits)
    # In the order in which they are to be opened: the first with room is then the first in the list.
    ranked = replace(request, offers=tuple(request.offers[at] for at in rank))
    ranked_limits = [limits[at] for at in rank]
    places = place_greedily(ranked, ranked_limits, _order_steps(request, limits), _make_chooser())
    return [
        [rank[at] for at in index]
        for index in _tighten_last(ranked, ranked_limits, minimise_containers(ranked, ranked_limits, places))
    ]


def _limit_to_logical(limits: Sequence[Limit], settings: PlacementSettings) -> list[Limit]:
    """The room in containers that are no larger than the logical one."""
    sizes = settings.container_memory_mb, settings.container_disk_mb, settings.container_cpu
    memory, disk, cores = (math.inf if size is None else size for size in sizes)
    return [(min(limit[0], memory), min(limit[1], disk), min(limit[2], cores)) for limit in limits]


def _order_offers(request: Request, limits: Sequence[Limit]) -> list[int]:
    """Offers by the share of everything that each could take, the largest first; of equals, where there are more."""
    beside = Counter(offer.worker for offer in request.offers)
    needs = [request.sum_needs(at) for at in range(3)]

    def compute_share(at: int) -> float:
        return min((has / need for has, need in zip(limits[at], needs, strict=True) if need), default=1.0)

    return sorted(range(len(limits)), key=lambda at: (-compute_share(at), -beside[request.offers[at].worker], at))


def _order_steps(request: Request, limits: Sequence[Limit]) -> list[StepRequest]:
    """The steps by share, the largest first; in batch level by level."""
    steps = order_by_share(request, limits)
    return steps if request.residency == "all" else sorted(steps, key=lambda step: step.level)


def _make_chooser() -> ChooseOffer:
    by_room: FirstOfferIndex | None = None
    before: tuple[StepRequest, object, int] | None = None

    def choose_offer(capacity: OfferCapacity, step: StepRequest, index: int) -> int | None:
        """Within a wave room only shrinks: an equal instance need not look before the last one's offer."""
        nonlocal by_room, before
        by_room = by_room or FirstOfferIndex(capacity)
        # The identity of the list is the wave's: see ``OfferCapacity.begin_wave``.
        same = (
            before is not None
            and before[0] is step
            and before[1] is capacity.free_memory
            and not capacity.request.beside
        )
        at = by_room.find_first(step, index, before[2] if before and same else 0)
        before = None if at is None else (step, capacity.free_memory, at)
        return at

    return choose_offer


def _tighten_last(request: Request, limits: Sequence[Limit], places: Placement) -> Placement:
    """The last offer in use exchanged for the smallest unused one that holds the same; of equals for the first."""
    last = max((at for chosen in places for at in chosen), default=0)
    if request.residency != "all" or request.beside or any(step.pinned for step in request.steps):
        return places
    held = compute_held_at_once(request, [(step, places[step.number].count(last)) for step in request.steps])
    for at in range(len(limits) - 1, last, -1):
        if held.fits_within(limits[at]):
            # Of equal offers the first: ids decide, not where the search ended.
            first = limits.index(limits[at], last)
            return [[first if offer == last else offer for offer in chosen] for chosen in places]
    return places
