"""Standbys exchanged so that the failure of any one worker leaves the others level.

Where every instance has one standby there is no choice at a failure: the actives of a worker go where their standbys
are. If that is uneven, further actives have to change hands to make it level again. So what counts is, for each
owner, how its *heirs* stand: their own actives and those they would inherit from it. ::

    owner a:  x -> b, y -> b     b would have two more, c none      x -> b, y -> c
    owner d:  z -> c             exchange y and z              ──>  z -> b

Copies nobody has yet are exchanged for nothing. Others are once all else is at rest, by warm-ups, as many at once as
there are to spare. The load of all copies stays as level as it was, and each exchange lowers the hand-overs that the
failures of all workers would cost too many, then how uneven they would leave the rest: so exchanges end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.spread import shared_tags

PASSABLE = 1
"""Hand-overs too many that a failure may cost."""

LOOKED_AT = 50
"""Exchanges to choose from."""

Change = dict[int, int]
"""Instance to the worker its standby goes to."""


def even_out(
    facts: Facts, active: dict[int, int], standbys: dict[int, list[int]], free: Iterable[int], seats: Seats
) -> None:
    """Exchange the standbys of ``free`` instances, which have one each that nobody holds yet, in ``standbys``."""
    found = _failover(facts, active, standbys, seats)
    found.even_out([instance for instance in free if instance in found.only])
    standbys.update({instance: [worker] for instance, worker in found.only.items()})


def rearranged(
    facts: Facts, active: dict[int, int], standbys: dict[int, list[int]], seats: Seats
) -> dict[int, list[int]]:
    """Standbys that are held exchanged, each once, as far as there are warm-ups for those that have to catch up."""
    found = _failover(facts, active, standbys, seats)
    found.left = facts.settings.max_warmups
    found.even_out(sorted(found.only))
    return standbys | {instance: [worker] for instance, worker in found.only.items()}


def cost_of_failures(facts: Facts, active: dict[int, int], only: dict[int, int]) -> tuple[int, int]:
    """Over all workers: hand-overs too many if it failed; for those with any, how uneven the rest would be."""
    if len(facts.workers) <= 2:
        return (0, 0)
    found = _Failover(facts, active, dict(only), facts.seats())
    several = [owner for owner, count in Counter(active.values()).items() if count > PASSABLE]
    return found.cost(several)


def _failover(facts: Facts, active: dict[int, int], standbys: dict[int, list[int]], seats: Seats) -> _Failover:
    several = len(facts.workers) > 2  # else there is one heir only
    only = {instance: workers[0] for instance, workers in standbys.items() if several and len(workers) == 1}
    return _Failover(facts, active, only, seats)


class _Failover:
    """Instances count alike, whatever their weight."""

    def __init__(self, facts: Facts, active: dict[int, int], only: dict[int, int], seats: Seats) -> None:
        self.facts = facts
        self.seats = seats
        self.active = active
        self.only = only
        self.own = Counter(active.values())
        self.copies = self.own + Counter(only.values())
        self.heirs = Counter((active[instance], worker) for instance, worker in only.items())
        self.left: int | None = None
        """Warm-ups to spare, where copies are held already."""
        self.exchanged: set[int] = set()

    def even_out(self, free: list[int]) -> None:
        """Until no exchange helps any owner."""
        owned: dict[int, list[int]] = {}
        for instance in free:
            owned.setdefault(self.active[instance], []).append(instance)
        several = [owner for owner, mine in sorted(owned.items()) if len(mine) > PASSABLE]
        while sum(self._relieve(owner, owned[owner], free) for owner in several):
            pass

    def _relieve(self, owner: int, mine: list[int], free: list[int]) -> bool:
        """Whether any exchange helped."""
        done = False
        while self.left != 0 and self._excess(owner) > PASSABLE and self._improve(owner, mine, free):
            done = True
        return done

    def cost(self, owners: Iterable[int]) -> tuple[int, int]:
        """See ``cost_of_failures``."""
        dear = [(excess, owner) for owner in owners if (excess := self._excess(owner)) > PASSABLE]
        return sum(excess - PASSABLE for excess, _ in dear), sum(self._unevenness(owner) for _, owner in dear)

    def _excess(self, owner: int) -> int:
        """Hand-overs that would follow its failure to make the others level."""
        off = self._off_level(owner).values()
        return max(sum(max(0, by) for by in off), -sum(min(0, by) for by in off))

    def _off_level(self, owner: int) -> dict[int, int]:
        """Of each other worker after the failure: actives above the most, or below the least, of a level load."""
        workers = [worker for worker in range(len(self.facts.workers)) if worker != owner]
        total = sum(self.facts.capacity[worker] for worker in workers)
        found = {}
        for worker in workers:
            have = self.own[worker] + self.heirs[owner, worker]
            least, rest = divmod(len(self.active) * self.facts.capacity[worker], total)
            found[worker] = min(0, have - least) + max(0, have - least - bool(rest))
        return found

    def _improve(self, owner: int, mine: list[int], free: list[int]) -> bool:
        """Make the first exchange that helps; the best of some where each has to be caught up with."""
        changes = self._candidates(owner, mine, free)
        if self.left is not None:
            some = list(islice(changes, LOOKED_AT))
            changes = iter(sorted(some, key=self._saving, reverse=True))
        return any(self._accept(change) for change in changes)

    def _saving(self, change: Change) -> tuple[int, ...]:
        """What failures cost less after it, for each copy that moves."""
        owners = {self.active[instance] for instance in change}
        before, undo = self.cost(owners), {instance: self.only[instance] for instance in change}
        self._apply(change)
        after = self.cost(owners)
        self._apply(undo)
        return before[0] - after[0], -len(change), before[1] - after[1]

    def _candidates(self, owner: int, mine: list[int], free: list[int]) -> Iterator[Change]:
        """Away from the heirs that would have the most, first of all to those that would have the least."""
        off = self._off_level(owner)
        for instance in sorted(mine, key=lambda at: (-off[self.only[at]], at)):
            for target in sorted(off, key=lambda at: (off[at], at)):
                if off[target] < off[self.only[instance]]:
                    yield from self._changes(instance, target, free)

    def _changes(self, instance: int, target: int, free: list[int]) -> Iterator[Change]:
        """Alone, where that keeps the load of all copies level, or for one that takes its place."""
        source = self.only[instance]
        if not self._may(instance, target):
            return
        if (self.copies[target] + 1) / self.facts.capacity[target] <= self.copies[source] / self.facts.capacity[source]:
            yield {instance: target}
        for other in free:
            if self.only[other] == target and self._may(other, source):
                yield {instance: target, other: source}

    def _may(self, instance: int, target: int) -> bool:
        owner, source = self.active[instance], self.only[instance]
        if target in (owner, source) or target not in self.facts.homes[instance]:
            return False
        if self.left is not None and instance in self.exchanged:
            return False  # else what it is to catch up for would change before it has
        return shared_tags(self.facts, target, (owner,)) <= shared_tags(self.facts, source, (owner,))

    def _accept(self, change: Change) -> bool:
        """Make the change if failures cost less after it."""
        late = 0 if self.left is None else sum(not self.facts.caught_up(*seat) for seat in change.items())
        if self.left is not None and late > self.left:
            return False
        owners = {self.active[instance] for instance in change}
        before, undo = self.cost(owners), {instance: self.only[instance] for instance in change}
        self._apply(change)
        if self.cost(owners) < before and self.seats.exchange(undo, change):
            self.left = None if self.left is None else self.left - late
            self.exchanged.update(change)
            return True
        self._apply(undo)
        return False

    def _unevenness(self, owner: int) -> int:
        return sum(abs(by) for by in self._off_level(owner).values())

    def _apply(self, change: Change) -> None:
        for instance, worker in change.items():
            self.copies[self.only[instance]] -= 1
            self.heirs[self.active[instance], self.only[instance]] -= 1
            self.only[instance] = worker
            self.copies[worker] += 1
            self.heirs[self.active[instance], worker] += 1
