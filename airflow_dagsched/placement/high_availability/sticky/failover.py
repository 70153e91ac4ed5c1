"""Standbys that are planted anyway, exchanged so that the failure of any one worker leaves the others level.

Where every instance has one standby there is no choice at a failure: the actives of a worker go where their standbys
are. If that is uneven, further actives have to change hands to make it level again. So what counts is, for each
owner, how its *heirs* stand: their own actives and those they would inherit from it. ::

    owner a:  x -> b, y -> b     b would have two more, c none      x -> b, y -> c
    owner d:  z -> c             exchange y and z              ──>  z -> b

Only copies nobody has yet are exchanged, so nothing moves for it; the load of all copies stays as level as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.spread import shared_tags

PASSABLE = 1
"""Hand-overs too many that a failure may cost."""

Change = dict[int, int]
"""Instance to the worker its standby goes to."""


def even_out(
    facts: Facts, active: dict[int, int], standbys: dict[int, list[int]], free: Iterable[int], seats: Seats
) -> None:
    """Exchange the standbys of ``free`` instances, which have one each that nobody holds yet, in ``standbys``."""
    if len(facts.workers) > 2:  # else there is one heir only
        only = {instance: workers[0] for instance, workers in standbys.items() if len(workers) == 1}
        found = _Failover(facts, active, only, seats).even_out([instance for instance in free if instance in only])
        standbys.update({instance: [worker] for instance, worker in found.items()})


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

    def even_out(self, free: list[int]) -> dict[int, int]:
        """The standbys after the exchanges."""
        owned: dict[int, list[int]] = {}
        for instance in free:
            owned.setdefault(self.active[instance], []).append(instance)
        for owner, mine in sorted(owned.items()):
            while len(mine) > PASSABLE and self._excess(owner) > PASSABLE and self._improve(owner, mine, free):
                pass
        return self.only

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
        off = self._off_level(owner)
        for instance in sorted(mine, key=lambda at: (-off[self.only[at]], at)):
            source = self.only[instance]
            for target in sorted(off, key=lambda at: (off[at], at)):
                if off[target] < off[source]:
                    for change in self._changes(instance, target, free):
                        if self._accept(owner, change):
                            return True
        return False

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
        return shared_tags(self.facts, target, (owner,)) <= shared_tags(self.facts, source, (owner,))

    def _accept(self, owner: int, change: Change) -> bool:
        """Make the change if it helps the owner and puts no other above what is passable."""
        owners = sorted({self.active[instance] for instance in change})
        before = {at: self._excess(at) for at in owners}
        uneven = self._unevenness(owner)
        undo = {instance: self.only[instance] for instance in change}
        self._apply(change)
        fine = all(self._excess(at) <= max(PASSABLE, before[at]) for at in owners)
        if fine and self._unevenness(owner) < uneven and self.seats.exchange(undo, change):
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
