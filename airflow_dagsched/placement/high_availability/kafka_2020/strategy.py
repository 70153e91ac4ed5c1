"""The order of the whole: state first, then the target, and a warm-up for each of the first differences."""

from __future__ import annotations

import heapq
import math

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.kafka_2020.balanced import balanced, moves
from airflow_dagsched.placement.high_availability.kafka_2020.constrained import constrained
from airflow_dagsched.placement.high_availability.kafka_2020.ranks import ranking_of
from airflow_dagsched.placement.high_availability.prior import NOBODY, Prior, prior_of, wanted_standbys
from airflow_dagsched.placement.high_availability.values import Outcome


def assign(facts: Facts) -> Outcome:
    """The assignment of the first code; the prior one if it is valid and within the balance factor."""
    if is_valid(facts) and is_even(facts):
        return Outcome(_without_warmups(facts))
    settings, copies = facts.settings, Copies(facts)
    now = constrained(ranking_of(facts), copies.capacity, settings.balance_factor)
    target = balanced(facts.stateful, copies.capacity, settings.balance_factor)
    planted = moves(now, target, settings.max_warmups)
    for worker, members in enumerate(now):
        for instance in members:
            copies.add(copies.active, worker, instance)
    for instance, _, worker in planted:
        copies.add(copies.warmup, worker, instance)
    _deal_standbys(copies)
    _deal_stateless(copies)
    movements = tuple(
        facts.movement(instance, facts.id(source), facts.id(to), "active", "warm up")
        for instance, source, to in planted
    )
    return Outcome(copies.assignment(), movements, follow_up=bool(movements))


def is_valid(facts: Facts) -> bool:
    """Every active has a worker that is caught up, if any is; every standby is there."""
    prior = prior_of(facts)
    if len(prior.active) < len(facts.instances):
        return False
    return all(_is_ready(facts, prior, instance) for instance in facts.stateful)


def _is_ready(facts: Facts, prior: Prior, instance: int) -> bool:
    held = prior.standby.get(instance, NOBODY)
    if len(held) < wanted_standbys(facts) or prior.active[instance] in held:
        return False
    ready = facts.caught_up_workers(instance)
    return not ready or prior.active[instance] in ready


def _without_warmups(facts: Facts) -> Assignment:
    """The prior assignment; it is even without the warm-ups it may still have."""
    prior, copies = prior_of(facts), Copies(facts)
    for instance, worker in prior.active.items():
        copies.add(copies.active, worker, instance)
    for instance in facts.stateful:
        for worker in prior.standby.get(instance, NOBODY):
            copies.add(copies.standby, worker, instance)
    return copies.assignment()


def is_even(facts: Facts) -> bool:
    """Whether the prior assignment is within the balance factor."""
    return active_skew(facts) <= facts.settings.balance_factor


def active_skew(facts: Facts) -> int:
    """Of the prior assignment: most minus least stateful actives, in whole instances per unit of capacity."""
    counts = [0] * len(facts.workers)
    active = prior_of(facts).active
    for instance in facts.stateful:
        if instance in active:
            counts[active[instance]] += 1
    shares = [count // worker.capacity for count, worker in zip(counts, facts.workers, strict=True)]
    return max(shares, default=0) - min(shares, default=0)


def _deal_standbys(copies: Copies) -> None:
    """On top of the warm-ups."""
    for instance in copies.facts.stateful:
        for _ in range(copies.facts.settings.num_standbys):
            free = [worker for worker in range(len(copies.loads)) if not copies.holds(worker, instance)]
            if not free:
                break
            copies.add(copies.standby, min(free, key=lambda worker: _load(copies, worker)), instance)


def _deal_stateless(copies: Copies) -> None:
    queue = [(_load(copies, worker), worker) for worker in range(len(copies.loads))]
    heapq.heapify(queue)
    for instance in copies.facts.stateless:
        worker = queue[0][1]
        copies.add(copies.active, worker, instance)
        heapq.heapreplace(queue, (_load(copies, worker), worker))


def _load(copies: Copies, worker: int) -> int:
    """All copies per unit of capacity, rounded up."""
    return math.ceil(copies.loads[worker])
