"""The workers of each stateful instance's standbys in the end."""

from __future__ import annotations

from collections import Counter

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY
from airflow_dagsched.placement.high_availability.space import Seat, Seats
from airflow_dagsched.placement.high_availability.sticky.failover import even_out, rearranged
from airflow_dagsched.placement.high_availability.sticky.house import active_loads
from airflow_dagsched.placement.high_availability.sticky.level import Level, Way
from airflow_dagsched.placement.high_availability.sticky.owners import Owners
from airflow_dagsched.placement.high_availability.sticky.spread import shared_tags, well_spread

Standbys = dict[int, list[int]]


def target_standbys(facts: Facts, owners: Owners, active: dict[int, int], seats: Seats) -> Standbys:
    """Holders stay holders; what is missing goes where it levels all copies, and what a failure would leave.

    A standby that has room nowhere is left out.
    """
    wanted = {instance: min(facts.settings.num_standbys, len(facts.homes[instance]) - 1) for instance in active}
    if not any(wanted.values()):
        return {instance: [] for instance in active}
    holders = {instance: _holders(facts, owners, instance, active[instance]) for instance in active}
    kept = {instance: found[: wanted[instance]] for instance, found in holders.items()}
    if facts.settings.spread_tags:
        kept = {instance: well_spread(facts, instance, active[instance], found) for instance, found in kept.items()}
    kept = {instance: [at for at in found if seats.keep(instance, at)] for instance, found in kept.items()}
    dealt = _Deal(facts, active, kept, seats)
    dealt.fill(wanted)
    standbys = dealt.level(_ways(holders, kept, owners), _started(kept, owners))
    even_out(facts, active, standbys, _new(standbys, holders), seats)
    standbys = {instance: sorted(workers) for instance, workers in standbys.items()}
    if _is_quiet(facts, owners, active, standbys):
        return rearranged(facts, active, standbys, seats)
    return standbys


def _new(standbys: Standbys, holders: Standbys) -> list[Seat]:
    """Copies that nobody holds yet."""
    return [(at, worker) for at, workers in standbys.items() for worker in workers if worker not in holders[at]]


def _is_quiet(facts: Facts, owners: Owners, active: dict[int, int], standbys: Standbys) -> bool:
    """Whether all is where it is to be."""
    if facts.previous is None or active != owners.active:
        return False
    return all(sorted(owners.standbys[instance]) == workers for instance, workers in standbys.items())


def _holders(facts: Facts, owners: Owners, instance: int, active: int) -> list[int]:
    """Standbys, then the owner that is to give the instance up, then warm-ups."""
    warming = owners.prior.warmup.get(instance, NOBODY)
    found = (*owners.standbys[instance], owners.active[instance], *warming)
    homes = facts.homes[instance]
    return [worker for worker in dict.fromkeys(found) if worker != active and worker in homes]


def _ways(holders: Standbys, kept: Standbys, owners: Owners) -> list[Way]:
    """From a holder that is kept to one that is not."""
    return [
        (instance, source, target)
        for instance, found in holders.items()
        for source in kept[instance]
        for target in found
        if target not in kept[instance]
    ]


def _started(kept: Standbys, owners: Owners) -> list[Way]:
    return [
        (instance, source, target)
        for instance, workers in kept.items()
        for source in workers
        for target in owners.prior.warmup.get(instance, NOBODY)
        if target not in workers
    ]


class _Deal:
    """Standbys as they are dealt; ``heirs`` counts, by pair, actives of the one that would fail over to the other."""

    def __init__(self, facts: Facts, active: dict[int, int], kept: Standbys, seats: Seats) -> None:
        self.facts = facts
        self.seats = seats
        self.active = active
        self.standbys = kept
        self.own = active_loads(facts, active)
        self.loads = list(self.own)
        self.heirs: Counter[tuple[int, int]] = Counter()
        for instance, workers in kept.items():
            for worker in workers:
                self._count(instance, worker)

    def _count(self, instance: int, worker: int) -> None:
        self.loads[worker] += self.facts.instances[instance].weight
        self.heirs[self.active[instance], worker] += 1

    def fill(self, wanted: dict[int, int]) -> None:
        """Every instance its first standby before any its second."""
        for count in range(1, max(wanted.values()) + 1):
            for instance, workers in self.standbys.items():
                if len(workers) < min(count, wanted[instance]):
                    self._plant(instance, workers)

    def _plant(self, instance: int, workers: list[int]) -> None:
        """On the best of those with room for it, if there is one."""
        taken = {self.active[instance], *workers}
        free = [worker for worker in self.facts.homes[instance] if worker not in taken]
        worker = self._best(instance, free, taken) if free else None
        if worker is not None and not self.seats.keep(instance, worker):
            free = [at for at in free if self.seats.may_keep(instance, at)]
            worker = self._best(instance, free, taken) if free else None
            if worker is not None:
                self.seats.keep(instance, worker)
        if worker is not None:
            self._count(instance, worker)
            workers.append(worker)

    def _best(self, instance: int, among: list[int], taken: set[int]) -> int:
        """Fewest tags shared with other copies, then least loaded, then least loaded if the owner failed."""
        free = self._least_shared(among, taken)
        relative = [self.loads[worker] / self.facts.capacity[worker] for worker in free]
        least = min(relative)
        lightest = [worker for worker, load in zip(free, relative, strict=True) if load == least]
        return min(lightest, key=lambda worker: self._after_failure(self.active[instance], worker))

    def _least_shared(self, free: list[int], taken: set[int]) -> list[int]:
        if not self.facts.settings.spread_tags:
            return free
        shared = [shared_tags(self.facts, worker, taken) for worker in free]
        least = min(shared)
        return [worker for worker, count in zip(free, shared, strict=True) if count == least]

    def _after_failure(self, owner: int, worker: int) -> float:
        return (self.own[worker] + self.heirs[owner, worker]) / self.facts.capacity[worker]

    def level(self, ways: list[Way], started: list[Way]) -> Standbys:
        """Moved until the load of all copies is level."""
        level = Level(self.facts, self.loads, self._may_go, self.seats.shift)
        for instance, workers in self.standbys.items():
            level.fix(instance, self.active[instance])
            for worker in workers:
                level.hold(instance, worker, self.active[instance])
        level.run(ways, started)
        return {instance: sorted(level.holders[instance] - {worker}) for instance, worker in self.active.items()}

    def _may_go(self, instance: int, source: int, target: int, holders: set[int]) -> bool:
        """Where it has room, and shares no more tags with the other copies."""
        others = holders - {source}
        if not self.seats.may_keep(instance, target):
            return False
        return shared_tags(self.facts, target, others) <= shared_tags(self.facts, source, others)
