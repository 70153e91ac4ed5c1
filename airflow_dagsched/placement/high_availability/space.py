"""What the workers have room for, and which offer each copy has its seat in while an assignment is made.

worker   offers              a copy is of an instance on a worker; its seat is the first of the
w1       0 [ x . ]  1 [ . ]  worker's offers with room. One that is active takes all that its step needs,
w2       2 [ y z ]           any other what its state takes: memory and disk, no cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import Room, Rooms
from airflow_dagsched.placement.values import Amounts

Seat = tuple[int, int]
"""Instance and worker, by position."""


class Space(Struct, frozen=True):
    """Offers by worker, needs by instance; both by position in natural order."""

    request: Request
    limits: Sequence[Rooms]
    offers: Sequence[Sequence[int]]
    works: Sequence[tuple[Work, int]]
    """Step and index of each instance."""
    states: Sequence[Amounts]
    """Of each instance, what a copy takes that is not active."""


class Seats:
    """Mutable: lives while one assignment is made. Without a space all have room everywhere."""

    def __init__(self, space: Space | None) -> None:
        self.space = space
        self.active: dict[Seat, int] = {}
        """Seat to offer."""
        self.copies: dict[Seat, int] = {}
        self._room = None if space is None else Room(space.request, space.limits)

    def copy(self) -> Seats:
        """The same active instances in the same offers; no copies."""
        made = Seats(self.space)
        for (instance, worker), at in self.active.items():
            made.run_in(instance, worker, at)
        return made

    def may_run(self, instance: int, worker: int) -> bool:
        """Whether it can be active there."""
        return self._room is None or self._first(instance, worker) is not None

    def run(self, instance: int, worker: int) -> bool:
        """Make it active there; False: there is no room."""
        at = 0 if self._room is None else self._first(instance, worker)
        if at is None:
            return False
        self.run_in(instance, worker, at)
        return True

    def run_in(self, instance: int, worker: int, at: int) -> None:
        """Make it active in offer ``at`` of the worker, which has room."""
        self.active[instance, worker] = at
        if self.space is not None and self._room is not None:
            self._room.take(self.space.works[instance][0], at)

    def stop(self, instance: int, worker: int) -> None:
        """It is active there no more."""
        at = self.active.pop((instance, worker))
        if self.space is not None and self._room is not None:
            self._room.give(self.space.works[instance][0], at)

    def move(self, instance: int, source: int, target: int) -> None:
        """Where it may run."""
        self.stop(instance, source)
        self.run(instance, target)

    def may_keep(self, instance: int, worker: int) -> bool:
        """Whether there is room for a copy that is not active."""
        return self._room is None or self._first_to_keep(instance, worker) is not None

    def keep(self, instance: int, worker: int) -> bool:
        """Put a copy there; False: there is no room."""
        at = 0 if self._room is None else self._first_to_keep(instance, worker)
        if at is None:
            return False
        self._lay(instance, worker, at)
        return True

    def drop(self, instance: int, worker: int) -> None:
        """Take the copy away."""
        at = self.copies.pop((instance, worker))
        if self.space is not None and self._room is not None:
            self._room.keep(self.space.states[instance], at, -1)

    def shift(self, instance: int, source: int, target: int) -> None:
        """Move a copy to where there is room for it."""
        self.drop(instance, source)
        self.keep(instance, target)

    def exchange(self, before: Mapping[int, int], after: Mapping[int, int]) -> bool:
        """Move one copy of each instance, all at once; False: that does not fit, and nothing has moved."""
        held = {seat: self.copies[seat] for seat in before.items()}
        for seat in held:
            self.drop(*seat)
        done: list[Seat] = []
        for seat in after.items():
            if not self.keep(*seat):
                break
            done.append(seat)
        if len(done) == len(after):
            return True
        for seat in done:
            self.drop(*seat)
        for seat, at in held.items():
            self._lay(*seat, at)
        return False

    def _lay(self, instance: int, worker: int, at: int) -> None:
        self.copies[instance, worker] = at
        if self.space is not None and self._room is not None:
            self._room.keep(self.space.states[instance], at)

    def _first(self, instance: int, worker: int) -> int | None:
        assert self.space is not None
        assert self._room is not None
        work, index = self.space.works[instance]
        for at in self.space.offers[worker]:
            if self._room.may_hold(work, index, at):
                return at
        return None

    def _first_to_keep(self, instance: int, worker: int) -> int | None:
        assert self.space is not None
        assert self._room is not None
        for at in self.space.offers[worker]:
            if self._room.may_keep(self.space.states[instance], at):
                return at
        return None
