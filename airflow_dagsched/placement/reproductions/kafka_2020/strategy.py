"""The order of the whole: state first, then the target, and a warm-up for each of the first differences."""

from __future__ import annotations

import math
from functools import partial

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY, Prior, read_prior
from airflow_dagsched.placement.high_availability.values import Outcome
from airflow_dagsched.placement.reproductions.kafka_2020.balanced import deal_balanced, list_moves
from airflow_dagsched.placement.reproductions.kafka_2020.constrained import assign_constrained
from airflow_dagsched.placement.reproductions.kafka_2020.ranks import rank_workers


def assign_kafka_2020(facts: Facts) -> Outcome:
    """The assignment of the first code; the prior one if it is valid and within the balance factor."""
    # Trunk dropped this in May 2020: a prior assignment that is kept may lack standbys that are wanted since.
    if is_valid_prior(facts) and is_even_prior(facts):
        return Outcome(_drop_warmups(facts))
    settings, copies = facts.settings, Copies(facts)
    now = assign_constrained(rank_workers(facts), copies.capacity, settings.balance_factor)
    target = deal_balanced(facts.stateful, copies.capacity, settings.balance_factor)
    planted = list_moves(now, target, settings.max_warmups)
    for worker, members in enumerate(now):
        for instance in members:
            copies.add_copy(copies.active, worker, instance)
    for instance, _, worker in planted:
        copies.add_copy(copies.warmup, worker, instance)
    _deal_standbys(copies)
    copies.deal_stateless(partial(_round_load, copies))
    movements = tuple(
        facts.make_movement(instance, facts.get_id(source), facts.get_id(to), "active", "warm up")
        for instance, source, to in planted
    )
    return Outcome(copies.make_assignment(), movements, follow_up=bool(movements))


def is_valid_prior(facts: Facts) -> bool:
    """Every active has a worker that is caught up, if any is; every standby is there."""
    prior = read_prior(facts)
    if len(prior.active) < len(facts.instances):
        return False
    return all(_is_ready(facts, prior, instance) for instance in facts.stateful)


def _is_ready(facts: Facts, prior: Prior, instance: int) -> bool:
    held = prior.standby.get(instance, NOBODY)
    # All that are asked for, though there be fewer workers: then no prior assignment is ever kept.
    if len(held) < facts.settings.num_standbys or prior.active[instance] in held:
        return False
    ready = facts.find_caught_up(instance)
    return not ready or prior.active[instance] in ready


def _drop_warmups(facts: Facts) -> Assignment:
    """The prior assignment; it is even without the warm-ups it may still have."""
    prior = read_prior(facts)
    copies = Copies.of(facts, prior.active)
    for instance in facts.stateful:
        for worker in prior.standby.get(instance, NOBODY):
            copies.add_copy(copies.standby, worker, instance)
    return copies.make_assignment()


def is_even_prior(facts: Facts) -> bool:
    """Whether the prior assignment is within the balance factor."""
    return compute_active_skew(facts) <= facts.settings.balance_factor


def compute_active_skew(facts: Facts) -> int:
    """Most minus least stateful actives of the prior assignment, in whole instances per unit of capacity."""
    counts = [0] * len(facts.workers)
    active = read_prior(facts).active
    for instance in facts.stateful:
        if instance in active:
            counts[active[instance]] += 1
    # Whole instances per thread, as the first code divides: 3 on two threads are as many as 2.
    shares = [count // worker.capacity for count, worker in zip(counts, facts.workers, strict=True)]
    return max(shares, default=0) - min(shares, default=0)


def _deal_standbys(copies: Copies) -> None:
    """Add standbys on top of the warm-ups."""
    for instance in copies.facts.stateful:
        for _ in range(copies.facts.settings.num_standbys):
            free = copies.find_free(instance)
            if not free:
                break
            copies.add_copy(copies.standby, min(free, key=lambda worker: _round_load(copies, worker)), instance)


def _round_load(copies: Copies, worker: int) -> int:
    """All copies per unit of capacity, rounded up."""
    return math.ceil(copies.loads[worker])
