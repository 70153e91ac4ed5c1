"""Stateless instances last: where they were, as far as that is level beside the stateful ones."""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import prior_of
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.house import active_loads, house
from airflow_dagsched.placement.high_availability.sticky.level import level_actives


def place_stateless(facts: Facts, active: dict[int, int], seats: Seats) -> dict[int, int]:
    """Beside the actives' targets, not their present places: else they would shift with every hand-over.

    Raises ``DoesNotFit``.
    """
    before = prior_of(facts).active
    placed = {
        instance: before[instance]
        for instance in facts.stateless
        if before.get(instance) in facts.homes[instance] and seats.run(instance, before[instance])
    }
    everything = {**active, **placed}
    house(facts, everything, {instance: [] for instance in facts.stateless if instance not in placed}, seats)
    level = level_actives(facts, active_loads(facts, everything), seats)
    placed = {instance: everything[instance] for instance in facts.stateless}
    for instance, worker in placed.items():
        level.hold(instance, worker, facts.instances[instance].step)
    return placed | {instance: worker for instance, _, worker in level.run()}


def stateless_now(facts: Facts, placed: dict[int, int], seats: Seats) -> dict[int, int]:
    """Where each is until the actives have reached their targets: as ``placed`` where that has room already.

    Raises ``DoesNotFit``.
    """
    now = {instance: worker for instance, worker in placed.items() if seats.run(instance, worker)}
    everything = dict(seats.active.keys())
    house(facts, everything, {instance: [] for instance in placed if instance not in now}, seats)
    return {instance: everything[instance] for instance in placed}
