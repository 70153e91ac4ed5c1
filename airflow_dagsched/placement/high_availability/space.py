"""What the workers have room for, and which offer each copy has its seat in while an assignment is made.

worker   offers              a copy is of an instance on a worker; its seat is the first of the
w1       0 [ x . ]  1 [ . ]  worker's offers with room. One that is active takes all that its step needs,
w2       2 [ y z ]           any other what its state takes: memory and disk, no cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from airflow_dagsched.placement.offer_capacity import OfferCapacity
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.values import Amounts, Limit

Seat = tuple[int, int]
"""Instance and worker, by position."""


class Space(Struct, frozen=True):
    """Offers by worker, needs by instance; both by position in natural order."""

    request: Request
    limits: Sequence[Limit]
    offers: Sequence[Sequence[int]]
    instances: Sequence[tuple[StepRequest, int]]
    """Step and index of each instance."""
    states: Sequence[Amounts]
    """What a copy takes that is not active, by instance."""


class Seats:
    """Mutable: lives while one assignment is made. Without a space all have room everywhere."""

    def __init__(self, space: Space | None) -> None:
        self.space = space
        self.active: dict[Seat, int] = {}
        """Seat to offer."""
        self.copies: dict[Seat, int] = {}
        self._capacity = None if space is None else OfferCapacity(space.request, space.limits)

    def copy_active(self) -> Seats:
        """The same active instances in the same offers; no copies."""
        seats = Seats(self.space)
        for (instance, worker), at in self.active.items():
            seats.activate_in_offer(instance, worker, at)
        return seats

    def may_activate(self, instance: int, worker: int) -> bool:
        """Whether it can be active there."""
        return self._capacity is None or self._find_offer(instance, worker) is not None

    def activate_instance(self, instance: int, worker: int) -> bool:
        """Make it active there; False: there is no room."""
        # Where room is not counted every offer will do, and 0 stands for it.
        at = 0 if self._capacity is None else self._find_offer(instance, worker)
        if at is None:
            return False
        self.activate_in_offer(instance, worker, at)
        return True

    def activate_in_offer(self, instance: int, worker: int, at: int) -> None:
        """Make it active in offer ``at`` of the worker, which has room."""
        self.active[instance, worker] = at
        if self.space is not None and self._capacity is not None:
            self._capacity.take_instance(self.space.instances[instance][0], at)

    def deactivate_instance(self, instance: int, worker: int) -> None:
        """It is active there no more."""
        at = self.active.pop((instance, worker))
        if self.space is not None and self._capacity is not None:
            self._capacity.give_back(self.space.instances[instance][0], at)

    def move_active(self, instance: int, source: int, target: int) -> None:
        """Where it may run."""
        self.deactivate_instance(instance, source)
        self.activate_instance(instance, target)

    def may_add_copy(self, instance: int, worker: int) -> bool:
        """Whether there is room for a copy that is not active."""
        return self._capacity is None or self._find_copy_offer(instance, worker) is not None

    def add_copy(self, instance: int, worker: int) -> bool:
        """Put a copy there; False: there is no room."""
        at = 0 if self._capacity is None else self._find_copy_offer(instance, worker)
        if at is None:
            return False
        self._put_copy(instance, worker, at)
        return True

    def remove_copy(self, instance: int, worker: int) -> None:
        """Take the copy away."""
        at = self.copies.pop((instance, worker))
        if self.space is not None and self._capacity is not None:
            self._capacity.take_copy(self.space.states[instance], at, -1)

    def move_copy(self, instance: int, source: int, target: int) -> None:
        """Move a copy to where there is room for it."""
        self.remove_copy(instance, source)
        self.add_copy(instance, target)

    def exchange_copies(self, before: Mapping[int, int], after: Mapping[int, int]) -> bool:
        """Move one copy of each instance, all at once; False: that does not fit, and nothing has moved."""
        held = {seat: self.copies[seat] for seat in before.items()}
        # All out before any goes in: two copies may need each other's room.
        for seat in held:
            self.remove_copy(*seat)
        done: list[Seat] = []
        for seat in after.items():
            if not self.add_copy(*seat):
                break
            done.append(seat)
        if len(done) == len(after):
            return True
        for seat in done:
            self.remove_copy(*seat)
        # Into the very offers they had: a search could find others, or none.
        for seat, at in held.items():
            self._put_copy(*seat, at)
        return False

    def _put_copy(self, instance: int, worker: int, at: int) -> None:
        self.copies[instance, worker] = at
        if self.space is not None and self._capacity is not None:
            self._capacity.take_copy(self.space.states[instance], at)

    def _find_offer(self, instance: int, worker: int) -> int | None:
        assert self.space is not None
        assert self._capacity is not None
        step, index = self.space.instances[instance]
        capacity = self._capacity
        return next((at for at in self.space.offers[worker] if capacity.may_hold(step, index, at)), None)

    def _find_copy_offer(self, instance: int, worker: int) -> int | None:
        assert self.space is not None
        assert self._capacity is not None
        capacity, needs = self._capacity, self.space.states[instance]
        return next((at for at in self.space.offers[worker] if capacity.may_hold_copy(needs, at)), None)
