"""A placement by search, for when a policy's own order leaves an instance without room.

Depth first over the instances, the largest first; equal instances go to offers in rising order, and of offers in
equal state only the first is tried. Complete on small requests; on large ones it ends with its budget, so a refusal
then says that no placement was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import Room, Rooms
from airflow_dagsched.placement.shares import by_share

BUDGET = 300_000
"""Offers looked at, in all: about half a second."""

Places = list[list[int]]
"""For each step, by its number, the offer of each of its instances."""

State = tuple[object, ...]


def search(
    request: Request, limits: Sequence[Rooms], budget: int = BUDGET, *, most: int | None = None
) -> Places | None:
    """An offer for each instance, so that all fit; None if there is none, or none was found within ``budget``.

    ``most``: so many offers in use at most; None: any number.
    """
    items = [(work, index) for work in by_share(request, limits) for index in range(work.parallelism)]
    room, named = Room(request, limits), _named(request)
    chosen: list[int] = []
    opened = 0
    start, seen = [0], [set[State]()]
    while len(chosen) < len(items):
        at = len(chosen)
        may_open = most is None or opened < most
        found, looked = _next(room, named, items[at], start[at], seen[at], may_open=may_open)
        budget -= looked
        if budget < 0 or (found < 0 and not at):
            return None
        if found < 0:
            start.pop()
            seen.pop()
            room.give(items[at - 1][0], left := chosen.pop())
            opened -= not room.count[left]
            continue
        opened += not room.count[found]
        room.take(items[at][0], found)
        chosen.append(found)
        start[at] = found + 1
        start.append(found if at + 1 < len(items) and _alike(request, items[at][0], items[at + 1][0]) else 0)
        seen.append(set())
    return _places(request, items, chosen)


def _alike(request: Request, work: Work, after: Work) -> bool:
    """Whether two instances in a row are equal, so that the second need not go before the first."""
    return work is after and not request.beside


def _next(
    room: Room, named: frozenset[str], item: tuple[Work, int], start: int, seen: set[State], *, may_open: bool
) -> tuple[int, int]:
    """The first offer from ``start`` on with room, in a state not seen here; -1: none. And how many were looked at."""
    for at in range(start, len(room.limits)):
        if (may_open or room.count[at]) and room.may_hold(*item, at):
            state = _state(room, named, at)
            if state not in seen:
                seen.add(state)
                return at, at - start + 1
    return -1, len(room.limits) - start + 1


def _state(room: Room, named: frozenset[str], at: int) -> State:
    """Equal for offers that are interchangeable: same room, same content, and nobody asks for one by its name."""
    worker = room.request.offers[at].worker
    who = worker if worker in named else ""
    held = () if room.request.residency == "all" else tuple(sorted(room.held[at].items()))
    return *room.left(at), room.disk(at), room.count[at], held, who


def _named(request: Request) -> frozenset[str]:
    """Workers that are not interchangeable: pinned to, or with several offers, which share a disk."""
    found = {worker for work in request.works for worker in work.pinned} | set(request.beside.values())
    offers = Counter(offer.worker for offer in request.offers)
    return frozenset(found | {worker for worker, count in offers.items() if count > 1})


def _places(request: Request, items: Sequence[tuple[Work, int]], chosen: Sequence[int]) -> Places:
    places = [[0] * work.parallelism for work in request.works]
    for (work, index), at in zip(items, chosen, strict=True):
        places[work.number][index] = at
    return places
