"""The workers of each stateful instance's standbys in the end."""

from __future__ import annotations

from collections import Counter

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY
from airflow_dagsched.placement.high_availability.space import Seat, Seats
from airflow_dagsched.placement.high_availability.sticky.initial_assignment import sum_active_loads
from airflow_dagsched.placement.high_availability.sticky.load_balancer import LoadBalancer, Way
from airflow_dagsched.placement.high_availability.sticky.owners import Owners
from airflow_dagsched.placement.high_availability.sticky.standbys.failover import balance_failures, rearrange_standbys
from airflow_dagsched.placement.high_availability.sticky.standbys.spread import count_shared_tags, keep_well_spread

Standbys = dict[int, list[int]]


def choose_target_standbys(facts: Facts, owners: Owners, active: dict[int, int], seats: Seats) -> Standbys:
    """Holders stay holders; what is missing goes where it levels all copies, and what a failure would leave.

    A standby that has room nowhere is left out.
    """
    # A pinned instance has no standby but on its own workers.
    wanted = {instance: min(facts.settings.num_standbys, len(facts.allowed[instance]) - 1) for instance in active}
    if not any(wanted.values()):
        return {instance: [] for instance in active}
    holders = {instance: _list_holders(facts, owners, instance, active[instance]) for instance in active}
    kept = {instance: workers[: wanted[instance]] for instance, workers in holders.items()}
    if facts.settings.spread_tags:
        kept = {
            instance: keep_well_spread(facts, instance, active[instance], workers) for instance, workers in kept.items()
        }
    kept = {instance: [at for at in workers if seats.add_copy(instance, at)] for instance, workers in kept.items()}
    deal = _Deal(facts, active, kept, seats)
    deal.deal_all(wanted)
    standbys = deal.balance_copies(_list_ways(holders, kept, owners), _list_started(kept, owners))
    balance_failures(facts, active, standbys, _list_new(standbys, holders), seats)
    standbys = {instance: sorted(workers) for instance, workers in standbys.items()}
    # At rest only: exchanging what is held costs warm-ups, and movements under way come first.
    if _is_quiet(facts, owners, active, standbys):
        return rearrange_standbys(facts, active, standbys, seats)
    return standbys


def _list_new(standbys: Standbys, holders: Standbys) -> list[Seat]:
    """Copies that nobody holds yet."""
    return [(at, worker) for at, workers in standbys.items() for worker in workers if worker not in holders[at]]


def _is_quiet(facts: Facts, owners: Owners, active: dict[int, int], standbys: Standbys) -> bool:
    """Whether all is where it is to be."""
    if facts.previous is None or active != owners.active:
        return False
    return all(sorted(owners.standbys[instance]) == workers for instance, workers in standbys.items())


def _list_holders(facts: Facts, owners: Owners, instance: int, active: int) -> list[int]:
    """Standbys, then the owner that is to give the instance up, then warm-ups."""
    warming = owners.prior.warmup.get(instance, NOBODY)
    holders = (*owners.standbys[instance], owners.active[instance], *warming)
    homes = facts.allowed[instance]
    return [worker for worker in dict.fromkeys(holders) if worker != active and worker in homes]


def _list_ways(holders: Standbys, kept: Standbys, owners: Owners) -> list[Way]:
    """Moves from a holder that is kept to one that is not."""
    return [
        (instance, source, target)
        for instance, workers in holders.items()
        for source in kept[instance]
        for target in workers
        if target not in kept[instance]
    ]


def _list_started(kept: Standbys, owners: Owners) -> list[Way]:
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
        self.own = sum_active_loads(facts, active)
        self.loads = list(self.own)
        self.heirs: Counter[tuple[int, int]] = Counter()
        for instance, workers in kept.items():
            for worker in workers:
                self._count_standby(instance, worker)

    def _count_standby(self, instance: int, worker: int) -> None:
        self.loads[worker] += self.facts.get_weight(instance)
        self.heirs[self.active[instance], worker] += 1

    def deal_all(self, wanted: dict[int, int]) -> None:
        """Every instance its first standby before any its second."""
        for count in range(1, max(wanted.values()) + 1):
            for instance, workers in self.standbys.items():
                if len(workers) < min(count, wanted[instance]):
                    self._add_standby(instance, workers)

    def _add_standby(self, instance: int, workers: list[int]) -> None:
        """Add a standby on the best of those with room for it, if there is one."""
        taken = {self.active[instance], *workers}
        free = [worker for worker in self.facts.allowed[instance] if worker not in taken]
        worker = self._choose_worker(instance, free, taken) if free else None
        if worker is not None and not self.seats.add_copy(instance, worker):
            free = [at for at in free if self.seats.may_add_copy(instance, at)]
            worker = self._choose_worker(instance, free, taken) if free else None
            if worker is not None:
                self.seats.add_copy(instance, worker)
        if worker is not None:
            self._count_standby(instance, worker)
            workers.append(worker)

    def _choose_worker(self, instance: int, among: list[int], taken: set[int]) -> int:
        """Fewest tags shared with other copies, then least loaded, then least loaded if the owner failed."""
        # In this order: two copies lost with one rack are worse than an uneven load.
        free = self._filter_least_shared(among, taken)
        relative = [self.loads[worker] / self.facts.capacity[worker] for worker in free]
        least = min(relative)
        lightest = [worker for worker, load in zip(free, relative, strict=True) if load == least]
        return min(lightest, key=lambda worker: self._compute_failure_load(self.active[instance], worker))

    def _filter_least_shared(self, free: list[int], taken: set[int]) -> list[int]:
        if not self.facts.settings.spread_tags:
            return free
        shared = [count_shared_tags(self.facts, worker, taken) for worker in free]
        least = min(shared)
        return [worker for worker, count in zip(free, shared, strict=True) if count == least]

    def _compute_failure_load(self, owner: int, worker: int) -> float:
        return (self.own[worker] + self.heirs[owner, worker]) / self.facts.capacity[worker]

    def balance_copies(self, ways: list[Way], started: list[Way]) -> Standbys:
        """Moved until the load of all copies is level."""
        balancer = LoadBalancer(self.facts, self.loads, self._may_move, self.seats.move_copy)
        for instance, workers in self.standbys.items():
            balancer.fix_copy(instance, self.active[instance])
            for worker in workers:
                balancer.hold_copy(instance, worker, self.active[instance])
        balancer.balance_loads(ways, started)
        return {instance: sorted(balancer.holders[instance] - {worker}) for instance, worker in self.active.items()}

    def _may_move(self, instance: int, source: int, target: int, holders: set[int]) -> bool:
        """Where it has room, and shares no more tags with the other copies."""
        others = holders - {source}
        if not self.seats.may_add_copy(instance, target):
            return False
        return count_shared_tags(self.facts, target, others) <= count_shared_tags(self.facts, source, others)
