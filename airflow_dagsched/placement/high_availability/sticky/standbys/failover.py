"""Standbys exchanged so that the failure of any one worker leaves the others level.

``failures`` says what each failure would cost: hand-overs too many. Here standbys change places until none costs more
than is passable, or no exchange helps. ::

    owner a:  x -> b, y -> b     b would have two more, c none      x -> b, y -> c
    owner d:  z -> c             exchange y and z              ──>  z -> b

The load of all copies stays as it was: for a standby that goes from b to c another of the same weight goes from c to b,
unless c may have one more anyway. Copies nobody has yet are exchanged for nothing.
Others are once all else is at rest, by warm-ups, as many at once as there are to spare. Each exchange lowers the cost
of all failures together: so exchanges end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.space import Seat, Seats
from airflow_dagsched.placement.high_availability.sticky.fair_shares import find_fair_line, list_fair_shares
from airflow_dagsched.placement.high_availability.sticky.standbys.failures import PASSABLE, Aftermath, Cost
from airflow_dagsched.placement.high_availability.sticky.standbys.spread import count_shared_tags
from airflow_dagsched.placement.high_availability.sticky.standbys.weighted_failures import make_failures

MAX_CANDIDATES = 20
"""Exchanges of each owner to choose from."""

Move = tuple[int, int, int]
"""Instance, and the workers its standby goes from and to."""

Change = tuple[Move, ...]
"""All at once."""

Standbys = dict[int, list[int]]


def balance_failures(
    facts: Facts, active: dict[int, int], standbys: Standbys, free: Iterable[Seat], seats: Seats
) -> None:
    """Exchange standbys that nobody holds yet, which are ``free``, in ``standbys``."""
    if len(facts.workers) > 2:  # else there is one heir only
        _Failover(facts, active, standbys, seats).balance_failures(free)


def rearrange_standbys(facts: Facts, active: dict[int, int], standbys: Standbys, seats: Seats) -> Standbys:
    """Standbys that are held exchanged, each instance's once, as far as there are warm-ups for what has to catch up."""
    exchanged = {instance: list(held) for instance, held in standbys.items()}
    if len(facts.workers) > 2:
        failover = _Failover(facts, active, exchanged, seats)
        failover.warmups_left = facts.settings.max_warmups
        failover.balance_failures((instance, worker) for instance, held in standbys.items() for worker in held)
    return {instance: sorted(held) for instance, held in exchanged.items()}


class _Failover:
    def __init__(self, facts: Facts, active: dict[int, int], standbys: Standbys, seats: Seats) -> None:
        self.facts = facts
        self.seats = seats
        self.active = active
        self.standbys = standbys
        self.failures = make_failures(facts, active, standbys)
        self.free: dict[int, dict[int, dict[int, None]]] = {}
        """Instances whose standby may go, by worker of the standby and owner."""
        self.copies = Counter(active.values())
        for held in standbys.values():
            self.copies.update(held)
        self.level = list_fair_shares(find_fair_line(self.copies.total(), facts.capacity), facts.capacity)
        self.is_uniform = len({facts.get_weight(instance) for instance in active}) == 1
        self.warmups_left: int | None = None
        """Warm-ups to spare, where copies are held already."""

    def balance_failures(self, free: Iterable[Seat]) -> None:
        """Until no exchange helps any owner."""
        for instance, worker in free:
            self._list_held(worker, self.active[instance])[instance] = None
        if self.warmups_left is None:
            # ``sum``, not ``any``: each owner has its turn in every pass.
            while sum(self._relieve_owner(owner) for owner in self.failures.find_critical()):
                pass
        while self.warmups_left and self._improve_owners(self.failures.find_critical()):
            pass

    def _list_held(self, worker: int, owner: int) -> dict[int, None]:
        return self.free.setdefault(worker, {}).setdefault(owner, {})

    def _relieve_owner(self, owner: int) -> bool:
        """Whether any exchange helped."""
        done = False
        while any(self._try_change(change) for change in self._iterate_helpful(owner)):
            done = True
        return done

    def _improve_owners(self, owners: Iterable[int]) -> bool:
        """Make the best of some exchanges, of each owner some, since each has to be caught up with."""
        exchanged = [change for owner in owners for change in islice(self._iterate_helpful(owner), MAX_CANDIDATES)]
        return any(self._try_change(change) for change in sorted(exchanged, key=self._rank_change, reverse=True))

    def _iterate_helpful(self, owner: int) -> Iterator[Change]:
        return filter(
            self._is_helpful, self._list_changes(owner) if self.failures.predict_after(owner).excess > PASSABLE else ()
        )

    def _is_helpful(self, change: Change) -> bool:
        return self._sum_savings(change) > (0, 0)

    def _rank_change(self, change: Change) -> tuple[int, int, int]:
        """The fewer copies move the better."""
        saved = self._sum_savings(change)
        return saved[0], -len(change), saved[1]

    def _sum_savings(self, change: Change) -> Cost:
        """What failures cost less after it. No two moves of a change are of one owner's instances."""
        savings = [self._compute_saving(move) for move in change]
        return sum(saved[0] for saved in savings), sum(saved[1] for saved in savings)

    def _compute_saving(self, move: Move) -> Cost:
        instance, source, target = move
        return self.failures.compute_saving(instance, self.active[instance], source, target)

    def _list_changes(self, owner: int) -> Iterator[Change]:
        """Away from the heirs that would have the most, first of all to those that would have the least."""
        after = self.failures.predict_after(owner)
        others = [at for at in range(len(self.facts.workers)) if at != owner]
        off = {at: self._compute_deviation(after, at) for at in others}
        takers = sorted((at for at in others if off[at] < 0), key=lambda at: (off[at], at))
        givers = sorted((at for at in others if self.free.get(at, {}).get(owner)), key=lambda at: (-off[at], at))
        for source in givers:
            for target in takers:
                if off[target] < off[source]:
                    yield from self._list_exchanges(owner, source, target)

    def _compute_deviation(self, after: Aftermath, worker: int) -> float:
        """Above zero what is too many, below what is missing; a half where there may be one more."""
        have = self.failures.own[worker] + after.inherited[worker]
        if have < after.level.least[worker]:
            return have - after.level.least[worker]
        return -0.5 if have < after.level.most[worker] else have - after.level.most[worker]

    def _list_exchanges(self, owner: int, source: int, target: int) -> Iterator[Change]:
        """Alone, where that keeps the load of all copies level, or for one that takes its place."""
        for instance in self._find_first(owner, source, target):
            first = (instance, source, target)
            if self._compute_saving(first) <= (0, 0):
                continue
            if self._may_have_one_more(source, target):
                yield (first,)
            for other in sorted(self.free.get(target, {})):
                if other != owner:
                    exchanged = self._find_first(other, target, source, self.facts.get_weight(instance))
                    yield from ((first, (back, target, source)) for back in exchanged)

    def _find_first(self, owner: int, source: int, target: int, weight: float | None = None) -> Iterator[int]:
        """The first of an owner's instances that may go that way: they are alike."""
        exchanged = (
            instance
            for instance in sorted(self.free.get(source, {}).get(owner, ()))
            if weight in (None, self.facts.get_weight(instance)) and self._may_move(instance, source, target)
        )
        return islice(exchanged, 1)

    def _may_have_one_more(self, source: int, target: int) -> bool:
        """Whether the load of all copies is level also when one goes that way."""
        # Fair shares count instances: where these weigh differently they say nothing about load.
        if not self.is_uniform:
            return False
        return self.copies[target] < self.level.most[target] and self.copies[source] > self.level.least[source]

    def _may_move(self, instance: int, source: int, target: int) -> bool:
        owner, held = self.active[instance], self.standbys[instance]
        if target == owner or target in held or target not in self.facts.allowed[instance]:
            return False
        others = {owner, *held} - {source}
        return count_shared_tags(self.facts, target, others) <= count_shared_tags(self.facts, source, others)

    def _try_change(self, change: Change) -> bool:
        """Make the change if there are warm-ups for it, and room."""
        # A copy that has caught up already takes over without a warm-up.
        late = 0
        if self.warmups_left is not None:
            late = sum(not self.facts.is_caught_up(instance, target) for instance, _, target in change)
            if late > self.warmups_left:
                return False
        before, after = ({move[0]: move[side] for move in change} for side in (1, 2))
        if not self.seats.exchange_copies(before, after):
            return False
        self._apply_change(change)
        for instance, source, target in change:
            owner = self.active[instance]
            del self._list_held(source, owner)[instance]
            if self.warmups_left is None:
                self._list_held(target, owner)[instance] = None
            else:
                self._hold_in_place(instance)
        self.warmups_left = None if self.warmups_left is None else self.warmups_left - late
        return True

    def _hold_in_place(self, instance: int) -> None:
        """Leave the instance's standbys as they are: what they catch up for would change before they have."""
        for worker in self.standbys[instance]:
            self._list_held(worker, self.active[instance]).pop(instance, None)

    def _apply_change(self, change: Change) -> None:
        for instance, source, target in change:
            self.failures.move_standby(instance, self.active[instance], source, target)
            self.copies[source] -= 1
            self.copies[target] += 1
