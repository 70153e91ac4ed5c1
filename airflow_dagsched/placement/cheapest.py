"""Cheapest: everything fits, so it is placed at the least cost (the case that needs no cutting).

Least sum of cost x cores x seconds and of the bytes moved between workers, at ``moved_mb_cost`` a MiB. Starts are
the first fit and the cheapest workers first; each is improved by moves and swaps until none pays; then branch and
bound looks for better ones: on small requests to the end, which proves the minimum, on large ones for a while.
Of equally cheap placements the first fit wins, which has the fewest containers.

What does not fit all at once runs in waves on the fewest workers: then first fit decides.
"""

from __future__ import annotations

from dataclasses import replace

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
    at_once = replace(request, residency="all")
    if request.residency == "slots" and not fits_at_once(at_once):
        return first_fit(request)
    best = improved(at_once, first_fit(at_once))
    second = improved(at_once, _cheap_workers_first(at_once))
    if price_of(at_once, second) < price_of(at_once, best) - GAIN:
        best = second
    return branch_and_bound(at_once, best, price_of(at_once, best))


def fits_at_once(request: Request) -> bool:
    """Whether all instances have room at the same time."""
    try:
        first_fit(replace(request, residency="all"))
    except DoesNotFit:
        return False
    return True


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
