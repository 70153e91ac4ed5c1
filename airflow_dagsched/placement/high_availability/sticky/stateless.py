"""Stateless instances last: where they were, as far as that is level beside the stateful ones."""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import prior_of
from airflow_dagsched.placement.high_availability.sticky.level import Level
from airflow_dagsched.placement.high_availability.sticky.owners import active_loads, house


def place_stateless(facts: Facts, active: dict[int, int]) -> dict[int, int]:
    """Beside the actives' targets, not their present places: else they would shift with every hand-over."""
    before = prior_of(facts).active
    placed = {
        instance: before[instance] for instance in facts.stateless if before.get(instance) in facts.homes[instance]
    }
    everything = {**active, **placed}
    house(facts, everything, {instance: [] for instance in facts.stateless if instance not in placed})
    level = Level(facts, active_loads(facts, everything))
    placed = {instance: everything[instance] for instance in facts.stateless}
    for instance, worker in placed.items():
        level.hold(instance, worker, facts.instances[instance].step)
    return placed | {instance: worker for instance, _, worker in level.run()}
