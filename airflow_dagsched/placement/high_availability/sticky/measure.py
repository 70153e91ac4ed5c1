"""How far an assignment is from what is wanted: each movement has to lead to less of it, so that movements end.

    before ──> this round                      less at once
    before ──> this round ──> the next one     or as soon as what this round plants has caught up

What counts, the first difference deciding: missing standbys; loads by active copies of state, the highest first; tags
that copies of an instance share; loads by all copies of state; what a failure would leave; loads by all that is active.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY, Prior
from airflow_dagsched.placement.high_availability.space import Seat
from airflow_dagsched.placement.high_availability.sticky.initial_assignment import sum_loads
from airflow_dagsched.placement.high_availability.sticky.standbys.spread import count_shared_tags
from airflow_dagsched.placement.high_availability.sticky.standbys.weighted_failures import compute_failure_cost

Part = Callable[[Facts, Prior], tuple[float, ...]]


def is_less(facts: Facts, after: Prior, before: Prior) -> bool:
    """Whether the first part in which they differ is less after."""
    for part in PARTS:
        value, before_value = part(facts, after), part(facts, before)
        if value != before_value:
            return value < before_value
    return False


def _count_missing(facts: Facts, prior: Prior) -> tuple[float, ...]:
    return (-sum(len(prior.standby.get(instance, NOBODY)) for instance in facts.stateful),)


def _list_active_loads(facts: Facts, prior: Prior) -> tuple[float, ...]:
    return _sort_loads(facts, ((instance, prior.active[instance]) for instance in facts.stateful))


def _count_shared_tags(facts: Facts, prior: Prior) -> tuple[float, ...]:
    if not facts.settings.spread_tags:
        return ()
    groups = ((prior.active[instance], *prior.standby.get(instance, NOBODY)) for instance in facts.stateful)
    return (
        sum(
            count_shared_tags(facts, worker, [at for at in group if at != worker])
            for group in groups
            for worker in group
        ),
    )


def _list_copy_loads(facts: Facts, prior: Prior) -> tuple[float, ...]:
    return _sort_loads(
        facts,
        (
            (instance, worker)
            for instance in facts.stateful
            for worker in (prior.active[instance], *prior.standby.get(instance, NOBODY))
        ),
    )


def _sum_failure_costs(facts: Facts, prior: Prior) -> tuple[float, ...]:
    active = {instance: prior.active[instance] for instance in facts.stateful}
    return compute_failure_cost(facts, active, {at: prior.standby.get(at, NOBODY) for at in active})


def _list_all_loads(facts: Facts, prior: Prior) -> tuple[float, ...]:
    return _sort_loads(facts, prior.active.items())


def _sort_loads(facts: Facts, pairs: Iterable[Seat]) -> tuple[float, ...]:
    """Relative, the highest first."""
    # Rounded: sums of the same weights in another order differ in the last bit, and have to tie.
    relative = (load / has for load, has in zip(sum_loads(facts, pairs), facts.capacity, strict=True))
    return tuple(sorted((round(load, DIGITS) for load in relative), reverse=True))


# In the order of what it costs to have less of it: a missing standby first, stateless instances, which move for
# nothing, last. No round may lower a later part by raising an earlier one, so rounds end.
PARTS: tuple[Part, ...] = (
    _count_missing,
    _list_active_loads,
    _count_shared_tags,
    _list_copy_loads,
    _sum_failure_costs,
    _list_all_loads,
)
