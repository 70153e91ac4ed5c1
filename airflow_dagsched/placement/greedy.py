"""One instance after another, in the order and to the offers that a policy chooses; search where that gets stuck."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from airflow_dagsched.placement.capacity import check_capacity, no_room
from airflow_dagsched.placement.exact import Places, search
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import Room, Rooms

Choose = Callable[[Room, Work, int], int | None]
"""The offer for an instance among those with room in this wave; None: none has."""


def greedy(
    request: Request,
    limits: Sequence[Rooms],
    order: Iterable[Work],
    choose: Choose,
    indices: Callable[[Work], Iterable[int]] = lambda work: range(work.parallelism),
) -> Places:
    """All instances placed by ``choose``, steps as in ``order``, instances of a step as in ``indices``.

    A batch level starts a new wave, and so does a step more than may run side by side, and an instance for which
    the wave has no room left. An instance without room even then starts the search. Raises ``DoesNotFit``.
    """
    check_capacity(request, limits)
    room = Room(request, limits)
    places = [[0] * work.parallelism for work in request.works]
    for work in in_waves(room, order):
        for index in indices(work):
            at = _chosen(room, work, index, choose)
            if at is None:
                return _searched(request, limits, work, room)
            room.take(work, at)
            places[work.number][index] = at
    return places


def in_waves(room: Room, order: Iterable[Work]) -> Iterable[Work]:
    """The steps of ``order``, with a new wave at each level and after so many steps as run side by side."""
    level, beside = None, 0
    for work in order:
        if work.level != level or beside == room.request.settings.steps_at_once:
            room.next_wave(work.level)
            level, beside = work.level, 0
        beside += 1
        yield work


def _chosen(room: Room, work: Work, index: int, choose: Choose) -> int | None:
    at = choose(room, work, index)
    if at is None and room.request.residency == "slots":
        room.next_wave(work.level)
        at = choose(room, work, index)
    return at


def _searched(request: Request, limits: Sequence[Rooms], work: Work, room: Room) -> Places:
    """Where no batch instance may wait, not: then it waits, which costs less than the search."""
    places = None if request.residency == "levels" else search(request, limits)
    if places is None:
        raise no_room(request, work, limits, room.free())
    return places


def in_order(request: Request) -> list[Work]:
    """Resident: pinned steps first, so that nobody takes their room; batch: level by level. Then as numbered."""
    if request.residency == "all":
        return sorted(request.works, key=lambda work: (not work.pinned, work.number))
    return sorted(request.works, key=lambda work: (work.level, work.number))
