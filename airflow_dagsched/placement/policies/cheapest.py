"""Cheapest: everything fits, so it is placed at the least cost (the case that needs no cutting).

Least sum of cost x cores x seconds and of the bytes moved between workers, at ``moved_mb_cost`` a MiB. Starts are
the first fit and the cheapest workers first; each is improved by moves and swaps until none pays, or for a while.
On small requests branch and bound then looks for a better one to the end, which proves the minimum.
Of equally cheap placements the first fit wins, which has the fewest containers.

Where instances have to wait for room, those of a batch level in waves, first fit decides.
"""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.exhaustive_search import Placement
from airflow_dagsched.placement.offer_capacity import OfferCapacity, compute_limits
from airflow_dagsched.placement.policies.branch_and_bound import search_cheaper
from airflow_dagsched.placement.policies.first_fit import place_first_fit
from airflow_dagsched.placement.policies.greedy import place_greedily
from airflow_dagsched.placement.policies.local_improvement import improve_placement
from airflow_dagsched.placement.policies.price import PlacementPrice
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.shares import order_by_share


def place_cheapest(request: Request) -> Placement:
    """An offer for each instance. Raises ``DoesNotFit``."""
    at_once = remove_waves(request)
    try:
        first = place_first_fit(at_once)
    except DoesNotFit:  # some have to wait for room: first fit decides, in waves
        return place_first_fit(request)
    # Nothing can cost less: no search.
    if compute_price(at_once, first) <= _compute_least_cost(at_once) + TOLERANCE:
        return first
    best = improve_placement(at_once, first)
    second = improve_placement(at_once, _place_cheap_first(at_once))
    if compute_price(at_once, second) < compute_price(at_once, best) - TOLERANCE:
        best = second
    # The search proves the minimum on small requests, and keeps ``best`` on all others.
    return search_cheaper(at_once, best, compute_price(at_once, best))


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


def _compute_least_cost(request: Request) -> float:
    """No placement costs less: each instance on the cheapest worker, nothing moved."""
    cost = min((offer.cost for offer in request.offers), default=0.0)
    return sum(cost * step.needs.cores * step.seconds * step.parallelism for step in request.steps)


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
