"""The worker each stateful instance is to be active on in the end."""

from __future__ import annotations

from collections import Counter

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.house import active_loads
from airflow_dagsched.placement.high_availability.sticky.level import Level, Moved, Way, level_actives
from airflow_dagsched.placement.high_availability.sticky.owners import Owners, rank


def target_actives(facts: Facts, owners: Owners, seats: Seats) -> dict[int, int]:
    """A level assignment that few moves lead to. What changed its worker since workers came or went stays there.

    ``seats`` are those of the owners, and of the target afterwards.
    """
    level = level_actives(facts, active_loads(facts, owners.active), seats)
    for instance, worker in owners.active.items():
        if instance not in owners.settled and instance not in facts.moved:
            level.hold(instance, worker, facts.instances[instance].step)
    _leave_be(facts, owners, level)
    if facts.settings.num_standbys == 1:
        heirs = Heirs(owners)
        level.gain, level.on_move = heirs.gain, _both(level.on_move, heirs.move)
    started = [
        (instance, worker, target)
        for instance, worker in owners.active.items()
        for target in owners.prior.warmup.get(instance, NOBODY)
    ]
    moved = level.run(_ways(facts, owners, started), started)
    return owners.active | {instance: worker for instance, _, worker in moved}


def _leave_be(facts: Facts, owners: Owners, level: Level) -> None:
    """What is not worth a hand-over where instances weigh differently, and run already.

    Finer than by the heaviest instance no load can be level, and what is uneven by one more such instance is left
    where it is. A worker that just came is filled: it had nothing since workers last came or went.
    """
    weights = {facts.instances[instance].weight for instance in facts.stateful}
    if len(weights) < 2 or not owners.runs:
        return
    old = {
        worker
        for instance, worker in owners.active.items()
        if instance not in facts.moved and owners.prior.active.get(instance) == worker
    }
    level.slack = [max(weights) * facts.settings.balance_factor] * len(facts.workers)
    level.spare = [max(weights) * (worker in old) for worker in range(len(facts.workers))]


def _both(first: Moved, then: Moved) -> Moved:
    def told(instance: int, source: int, target: int) -> None:
        first(instance, source, target)
        then(instance, source, target)

    return told


def _ways(facts: Facts, owners: Owners, started: list[Way]) -> list[Way]:
    """To holders: caught-up ones first, warm-ups before standbys, then by lag."""
    standing_by = [
        (instance, worker, target)
        for instance, worker in owners.active.items()
        for target in owners.prior.standby.get(instance, NOBODY)
    ]
    found = [(rank(facts, way[0], way[2]), at, way) for at, ways in enumerate((started, standing_by)) for way in ways]
    return [way for _, _, way in sorted(found)]


class Heirs:
    """How many actives of a worker have a standby on another, by pair: the more of them differ, the better."""

    def __init__(self, owners: Owners) -> None:
        self.standbys = owners.standbys
        pairs = ((owner, heir) for instance, owner in owners.active.items() for heir in self.standbys[instance])
        self.count = Counter(pairs)

    def gain(self, instance: int, source: int, target: int) -> int:
        """Of a move: actives on ``source`` fewer, less those on ``target`` more, that have this one's heirs."""
        return sum(self.count[source, heir] - self.count[target, heir] for heir in self.standbys[instance])

    def move(self, instance: int, source: int, target: int) -> None:
        """It changes its owner."""
        for heir in self.standbys[instance]:
            self.count[source, heir] -= 1
            self.count[target, heir] += 1
