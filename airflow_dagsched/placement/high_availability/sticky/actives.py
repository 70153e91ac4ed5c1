"""The worker each stateful instance is to be active on in the end."""

from __future__ import annotations

from collections import Counter

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.initial_assignment import sum_active_loads
from airflow_dagsched.placement.high_availability.sticky.load_balancer import LoadBalancer, OnMove, Way, balance_actives
from airflow_dagsched.placement.high_availability.sticky.owners import Owners, rank_copy


def choose_target_actives(facts: Facts, owners: Owners, seats: Seats) -> dict[int, int]:
    """A level assignment that few moves lead to. What changed its worker since workers came or went stays there.

    ``seats`` are those of the owners, and of the target afterwards.
    """
    balancer = balance_actives(facts, sum_active_loads(facts, owners.active), seats)
    for instance, worker in owners.active.items():
        # Whoever the balancer doesn't hold stays: what went once since workers changed never goes again, so rounds end.
        if instance not in owners.settled and instance not in facts.handed_over:
            balancer.hold_copy(instance, worker, facts.instances[instance].step)
    _allow_slack(facts, owners, balancer)
    # With one standby its worker inherits, and whose actives move settles how much; of several one can still be chosen.
    if facts.settings.num_standbys == 1:
        heirs = HeirCounts(owners)
        balancer.gain, balancer.on_move = heirs.compute_gain, _combine_callbacks(balancer.on_move, heirs.record_move)
    started = [
        (instance, worker, target)
        for instance, worker in owners.active.items()
        for target in owners.prior.warmup.get(instance, NOBODY)
    ]
    moved = balancer.balance_loads(_list_ways(facts, owners, started), started)
    return owners.active | {instance: worker for instance, _, worker in moved}


def _allow_slack(facts: Facts, owners: Owners, balancer: LoadBalancer) -> None:
    """What is not worth a hand-over where instances weigh differently, and run already.

    Finer than by the heaviest instance no load can be level, and what is uneven by one more such instance is left
    where it is. A worker that just came is filled: it had nothing since workers last came or went.
    """
    weights = {facts.get_weight(instance) for instance in facts.stateful}
    if len(weights) < 2 or not owners.runs:
        return
    old = {
        worker
        for instance, worker in owners.active.items()
        if instance not in facts.handed_over and owners.prior.active.get(instance) == worker
    }
    balancer.slack = [max(weights) * facts.settings.balance_factor] * len(facts.workers)
    balancer.spare = [max(weights) * (worker in old) for worker in range(len(facts.workers))]


def _combine_callbacks(first: OnMove, then: OnMove) -> OnMove:
    def call_both(instance: int, source: int, target: int) -> None:
        first(instance, source, target)
        then(instance, source, target)

    return call_both


def _list_ways(facts: Facts, owners: Owners, started: list[Way]) -> list[Way]:
    """Moves to holders: caught-up ones first, warm-ups before standbys, then by lag."""
    standing_by = [
        (instance, worker, target)
        for instance, worker in owners.active.items()
        for target in owners.prior.standby.get(instance, NOBODY)
    ]
    # ``at`` before the way: of equal ranks warm-ups go before standbys.
    ranked = [
        (rank_copy(facts, way[0], way[2]), at, way) for at, ways in enumerate((started, standing_by)) for way in ways
    ]
    return [way for _, _, way in sorted(ranked)]


class HeirCounts:
    """How many actives of a worker have a standby on another, by pair: the more of them differ, the better."""

    def __init__(self, owners: Owners) -> None:
        self.standbys = owners.standbys
        pairs = ((owner, heir) for instance, owner in owners.active.items() for heir in self.standbys[instance])
        self.count = Counter(pairs)

    def compute_gain(self, instance: int, source: int, target: int) -> int:
        """What a move gains: actives on ``source`` fewer, less those on ``target`` more, that have this one's heirs."""
        return sum(self.count[source, heir] - self.count[target, heir] for heir in self.standbys[instance])

    def record_move(self, instance: int, source: int, target: int) -> None:
        """It changes its owner."""
        for heir in self.standbys[instance]:
            self.count[source, heir] -= 1
            self.count[target, heir] += 1
