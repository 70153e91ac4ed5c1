"""Cheapest: everything fits, so it is placed at the least cost (the case that needs no cutting).

Least sum of cost x cores x seconds and of the bytes moved between workers, at ``moved_mb_cost`` a MiB. Starts are
the first fit and the cheapest workers first; each is improved by moves and swaps until none pays, or for a while.
On small requests branch and bound then looks for a better one to the end, which proves the minimum.
Of equally cheap placements the first fit wins, which has the fewest containers.

Where instances have to wait for room, those of a batch level in waves, first fit decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.exhaustive_search import Placement, search_placement
from airflow_dagsched.placement.offer_capacity import OfferCapacity, compute_limits
from airflow_dagsched.placement.policies.branch_and_bound import is_small, search_cheaper
from airflow_dagsched.placement.policies.effort import Effort
from airflow_dagsched.placement.policies.first_fit import place_first_fit
from airflow_dagsched.placement.policies.greedy import place_greedily
from airflow_dagsched.placement.policies.local_improvement import improve_placement
from airflow_dagsched.placement.policies.price import Measure, PlacementPrice
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.shares import order_by_share

BUDGET = 20_000
"""Offers looked at, at most, for a way in which nobody waits: some hundredths of a second."""


def place_cheapest(request: Request) -> Placement:
    """An offer for each instance. Raises ``DoesNotFit``."""
    return search_cheapest(request, (), Effort())


def search_cheapest(request: Request, known: Measure, effort: Effort) -> Placement:
    """The same, where a price is known that is to be beaten: nothing dearer is looked at to the end."""
    at_once = remove_waves(request)
    first = _place_at_once(at_once)
    # Some have to wait for room: first fit decides, in waves.
    if first is None:
        return place_first_fit(request)
    # Nothing can cost less: no search.
    if compute_price(at_once, first) <= bound_price(at_once)[1] + TOLERANCE:
        return first
    best = _improve_starts(at_once, first, effort, few=bool(known) and not is_small(at_once))
    # The search proves the minimum on small requests, and keeps ``best`` on all others.
    least = compute_price(at_once, best)
    return search_cheaper(at_once, best, least if not known or known[0] else min(least, known[1]), effort)


def _improve_starts(request: Request, first: Placement, effort: Effort, *, few: bool) -> Placement:
    """The better of first fit and cheapest first, each improved; with ``few`` only the one that is cheaper before."""
    starts = sorted(_list_starts(request, first), key=lambda start: round(compute_price(request, start), 9))
    found = [improve_placement(request, start, effort) for start in (starts[:1] if few else starts)]
    return min(found, key=lambda places: round(compute_price(request, places), 9))


def _list_starts(request: Request, first: Placement) -> list[Placement]:
    """First fit, which ``first`` is, then the cheapest workers first, if all find room in that order."""
    with suppress(DoesNotFit):
        return [first, _place_cheap_first(request)]
    return [first]


def _place_at_once(request: Request) -> Placement | None:
    """First fit, or what a search finds of a small request; None: no way was found. ``request``: without waves."""
    try:
        return place_first_fit(request)
    except DoesNotFit:
        return search_placement(request, compute_limits(request), BUDGET) if is_small(request) else None


def measure_price(request: Request, places: Placement) -> Measure:
    """Whether some have to wait for room, then the price."""
    return float(_has_waiting(remove_waves(request), places)), round(compute_price(request, places), 9)


def bound_price(request: Request) -> Measure:
    """No placement without waiting costs less: level by level the longest on the cheapest cores, and nothing moved."""
    levels: dict[int, list[StepRequest]] = {}
    for step in sorted(request.steps, key=lambda step: -step.seconds):
        levels.setdefault(0 if request.residency == "all" else step.level, []).append(step)
    cheap = sorted((offer.cost, math.inf if offer.cores is None else offer.cores) for offer in request.offers)
    least = sum(_bound_level(steps, cheap) for steps in levels.values())
    # Where they do not fit at once there is no bound of those that wait but the cheapest of all.
    return 0.0, round(least, 9) - TOLERANCE


def _bound_level(steps: Sequence[StepRequest], cheap: Sequence[tuple[float, float]]) -> float:
    """``steps``: the longest first; ``cheap``: cost and cores of offers, the cheapest first."""
    offers, total = iter(cheap), 0.0
    cost, free = next(offers, (0.0, math.inf))
    for step in steps:
        wanted = step.needs.cores * step.parallelism
        while wanted > 0:
            taken = min(wanted, free)
            total, wanted, free = total + taken * cost * step.seconds, wanted - taken, free - taken
            if wanted > 0:
                # None left: the rest has to wait, and costs no less than nothing.
                cost, free = next(offers, (0.0, math.inf))
    return total


def _has_waiting(request: Request, places: Placement) -> bool:
    """Whether some instance finds no room beside the others; ``request``: without waves."""
    capacity = OfferCapacity(request, compute_limits(request))
    for step in sorted(request.steps, key=lambda step: step.level):
        capacity.begin_wave(step.level)
        for index, at in enumerate(places[step.number]):
            if not capacity.fits_in_wave(step, index, at):
                return True
            capacity.take_instance(step, at)
    return False


def remove_waves(request: Request) -> Request:
    """The same request, if nothing may wait for room: batch instances run with all others of their level."""
    return replace(request, residency="all" if request.residency == "all" else "levels")


def fits_at_once(request: Request) -> bool:
    """Whether no instance has to wait for room."""
    try:
        place_first_fit(remove_waves(request))
    except DoesNotFit:
        return False
    return True


def compute_price(request: Request, places: Placement) -> float:
    """Cost of a whole placement."""
    price = PlacementPrice(request)
    return sum(
        price.add_instance(step, index, at) for step in request.steps for index, at in enumerate(places[step.number])
    )


def _place_cheap_first(request: Request) -> Placement:
    limits = compute_limits(request)
    cheap = sorted(range(len(limits)), key=lambda at: (request.offers[at].cost, at))

    def choose_offer(capacity: OfferCapacity, step: StepRequest, index: int) -> int | None:
        return next((at for at in cheap if capacity.fits_in_wave(step, index, at)), None)

    return place_greedily(request, limits, order_by_share(request, limits), choose_offer)
