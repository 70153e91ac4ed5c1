"""Stateless instances last: where they were, as far as that is level beside the stateful ones."""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import read_prior
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.initial_assignment import place_unassigned, sum_active_loads
from airflow_dagsched.placement.high_availability.sticky.load_balancer import balance_actives


def place_stateless(facts: Facts, active: dict[int, int], seats: Seats) -> dict[int, int]:
    """Beside the actives' targets, not their present places: else they would shift with every hand-over.

    Raises ``DoesNotFit``.
    """
    # Nothing to restore, so they move freely: they even out what stateful ones leave.
    before = read_prior(facts).active
    placed = {
        instance: before[instance]
        for instance in facts.stateless
        if before.get(instance) in facts.allowed[instance] and seats.activate_instance(instance, before[instance])
    }
    everything = {**active, **placed}
    place_unassigned(facts, everything, {instance: [] for instance in facts.stateless if instance not in placed}, seats)
    balancer = balance_actives(facts, sum_active_loads(facts, everything), seats)
    placed = {instance: everything[instance] for instance in facts.stateless}
    for instance, worker in placed.items():
        balancer.hold_copy(instance, worker, facts.instances[instance].step)
    return placed | {instance: worker for instance, _, worker in balancer.balance_loads()}


def place_stateless_now(facts: Facts, placed: dict[int, int], seats: Seats) -> dict[int, int]:
    """Where each is until the actives have reached their targets: as ``placed`` where that has room already.

    Raises ``DoesNotFit``.
    """
    now = {instance: worker for instance, worker in placed.items() if seats.activate_instance(instance, worker)}
    everything = dict(seats.active.keys())
    place_unassigned(facts, everything, {instance: [] for instance in placed if instance not in now}, seats)
    return {instance: everything[instance] for instance in placed}
