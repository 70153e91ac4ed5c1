"""A placement made cheaper by moving one instance, or swapping two, while that pays: a local minimum."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.price import Price
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import Room, rooms_of

TRIES = 10_000
"""Moves and swaps priced, in all: about a tenth of a second."""
GAIN = 1e-9

Instance = tuple[Work, int]


def improved(request: Request, places: Places) -> Places:
    """A placement that costs no more, of a resident request."""
    price, room = Price(request), Room(request, rooms_of(request))
    for work in request.works:
        for index, at in enumerate(places[work.number]):
            price.take(work, index, at)
            room.take(work, at)
    tries, gained = TRIES, True
    while gained and tries > 0:
        gained = False
        for one, other, to in itertools.islice(_candidates(request), tries):
            tries -= 1
            paid = _swapped(price, room, one, other) if other else _moved(price, room, one, to)
            gained = gained or paid
    return price.places


def _candidates(request: Request) -> Iterator[tuple[Instance, Instance | None, int]]:
    """First each instance to each offer, then each two instances in each other's place."""
    instances = [(work, index) for work in request.works for index in range(work.parallelism)]
    for one in instances:
        for to in range(len(request.offers)):
            yield one, None, to
    for one, other in itertools.combinations(instances, 2):
        yield one, other, 0


def _moved(price: Price, room: Room, one: Instance, to: int) -> bool:
    """Move the instance if there is room and it pays; whether it did."""
    work, index = one
    if to == price.places[work.number][index] or not room.may_hold(work, index, to):
        return False
    before = price.give(work, index)
    if price.added(work, index, to) >= price.added(work, index, before) - GAIN:
        price.take(work, index, before)
        return False
    price.take(work, index, to)
    room.give(work, before)
    room.take(work, to)
    return True


def _swapped(price: Price, room: Room, one: Instance, other: Instance) -> bool:
    """Swap the two if there is room and it pays; whether it did."""
    here, there = (price.places[work.number][index] for work, index in (one, other))
    if here == there or one[0] is other[0] or not _have_room(room, one, other, here, there):
        return False
    price.give(*one)
    price.give(*other)
    before = price.take(*one, here) + price.take(*other, there)
    price.give(*one)
    price.give(*other)
    after = price.take(*one, there) + price.take(*other, here)
    if after < before - GAIN:
        _exchange(room, one, other, here, there)
        return True
    price.give(*one)
    price.give(*other)
    price.take(*one, here)
    price.take(*other, there)
    return False


def _have_room(room: Room, one: Instance, other: Instance, here: int, there: int) -> bool:
    """Whether both fit once they are out of each other's way."""
    room.give(one[0], here)
    room.give(other[0], there)
    fit = room.may_hold(*one, there)
    room.take(one[0], there)
    fit = fit and room.may_hold(*other, here)
    room.give(one[0], there)
    room.take(one[0], here)
    room.take(other[0], there)
    return fit


def _exchange(room: Room, one: Instance, other: Instance, here: int, there: int) -> None:
    room.give(one[0], here)
    room.give(other[0], there)
    room.take(one[0], there)
    room.take(other[0], here)
