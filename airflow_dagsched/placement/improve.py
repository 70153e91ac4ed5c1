"""A placement made cheaper by moving one instance, or swapping two, while that pays: a local minimum."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.price import Price
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import Room, rooms_of

TRIES = 10_000
"""Moves and swaps priced, in all."""
GAIN = 1e-9

Instance = tuple[Work, int]


def improved(request: Request, places: Places) -> Places:
    """A placement that costs no more, of a resident request."""
    price, room = Price(request), Room(request, rooms_of(request))
    for work in request.works:
        for index, at in enumerate(places[work.number]):
            price.move(work, index, at)
            room.take(work, at)
    tries = TRIES
    gained = True
    while gained and tries > 0:
        gained = False
        for one, other, to in _candidates(request, price):
            tries -= 1
            if tries < 0:
                break
            paid = _swapped(price, room, one, other) if other else _moved(price, room, one, to)
            gained = gained or paid
    return price.places


def _candidates(request: Request, price: Price) -> Iterator[tuple[Instance, Instance | None, int]]:
    """First each instance to each offer, then each two instances in each other's place."""
    instances = [(work, index) for work in request.works for index in range(work.parallelism)]
    for one in instances:
        for to in range(len(request.offers)):
            yield one, None, to
    for at, one in enumerate(instances):
        for other in instances[at + 1 :]:
            yield one, other, 0


def _moved(price: Price, room: Room, one: Instance, to: int) -> bool:
    """Whether the move had room and paid, and so was made."""
    work, index = one
    before = price.places[work.number][index]
    if to == before or not room.may_hold(work, index, to):
        return False
    if price.move(work, index, to) >= -GAIN:
        price.move(work, index, before)
        return False
    room.give(work, before)
    room.take(work, to)
    return True


def _swapped(price: Price, room: Room, one: Instance, other: Instance) -> bool:
    """Whether the swap had room and paid, and so was made."""
    here, there = (price.places[work.number][index] for work, index in (one, other))
    if here == there:
        return False
    added = price.move(*one, there) + price.move(*other, here)
    if added < -GAIN and _exchange(room, one, other, here, there):
        return True
    price.move(*one, here)
    price.move(*other, there)
    return False


def _exchange(room: Room, one: Instance, other: Instance, here: int, there: int) -> bool:
    """Take both out and put them in each other's place, if there is room for both; else leave all as it was."""
    room.give(one[0], here)
    room.give(other[0], there)
    if room.may_hold(*one, there):
        room.take(one[0], there)
        if room.may_hold(*other, here):
            room.take(other[0], here)
            return True
        room.give(one[0], there)
    room.take(one[0], here)
    room.take(other[0], there)
    return False
