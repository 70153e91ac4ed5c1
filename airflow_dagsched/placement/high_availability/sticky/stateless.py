"""Stateless instances last: where they were, as far as that is level beside the stateful ones."""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import prior_of
from airflow_dagsched.placement.high_availability.sticky.level import Level
from airflow_dagsched.placement.high_availability.sticky.owners import active_loads, house


def place_stateless(facts: Facts, active: dict[int, int]) -> dict[int, int]:
    """Beside the actives' targets, not their present places: else they would shift with every hand-over."""
    before = prior_of(facts).active
    placed = {instance: before[instance] for instance in facts.stateless if instance in before}
    loads = active_loads(facts, {**active, **placed})
    house(facts, loads, placed, {instance: [] for instance in facts.stateless if instance not in placed})
    level = Level(facts, loads)
    for instance, worker in placed.items():
        level.hold(instance, worker)
    return placed | {instance: worker for instance, _, worker in level.run()}
