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
from airflow_dagsched.placement.branch import branch_and_bound
from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.first_fit import first_fit
from airflow_dagsched.placement.greedy import greedy
from airflow_dagsched.placement.improve import improved
from airflow_dagsched.placement.price import Price
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import Room, rooms_of
from airflow_dagsched.placement.shares import by_share

GAIN = 1e-9
"""A cheaper placement is cheaper by more than rounding."""


def cheapest(request: Request) -> Places:
    """An offer for each instance. Raises ``DoesNotFit``."""
    at_once = without_waves(request)
    if not fits_at_once(request):
        return first_fit(request)
    first = first_fit(at_once)
    if price_of(at_once, first) <= _least(at_once) + GAIN:
        return first
    best = improved(at_once, first)
    second = improved(at_once, _cheap_workers_first(at_once))
    if price_of(at_once, second) < price_of(at_once, best) - GAIN:
        best = second
    return branch_and_bound(at_once, best, price_of(at_once, best))


def without_waves(request: Request) -> Request:
    """The same request, if nothing may wait for room: batch instances run with all others of their level."""
    return replace(request, residency="all" if request.residency == "all" else "levels")


def fits_at_once(request: Request) -> bool:
    """Whether no instance has to wait for room."""
    try:
        first_fit(without_waves(request))
    except DoesNotFit:
        return False
    return True


def _least(request: Request) -> float:
    """No placement costs less: each instance on the cheapest worker, nothing moved."""
    cost = min((offer.cost for offer in request.offers), default=0.0)
    return sum(cost * work.needs.cores * work.seconds * work.parallelism for work in request.works)


def price_of(request: Request, places: Places) -> float:
    """Cost of a whole placement."""
    price = Price(request)
    return sum(price.take(work, index, at) for work in request.works for index, at in enumerate(places[work.number]))


def _cheap_workers_first(request: Request) -> Places:
    limits = rooms_of(request)
    cheap = sorted(range(len(limits)), key=lambda at: (request.offers[at].cost, at))

    def choose(room: Room, work: Work, index: int) -> int | None:
        return next((at for at in cheap if room.fits(work, index, at)), None)

    return greedy(request, limits, by_share(request, limits), choose)
