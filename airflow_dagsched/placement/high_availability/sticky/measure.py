"""How far an assignment is from what is wanted: each movement has to lead to less of it, so that movements end.

    before ──> this round                      less at once
    before ──> this round ──> the next one     or as soon as what this round plants has caught up

What counts, the first difference deciding: missing standbys; loads by active copies of state, the highest first; tags
that copies of an instance share; loads by all copies of state; what a failure would leave; loads by all that is active.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY, Prior
from airflow_dagsched.placement.high_availability.space import Seat
from airflow_dagsched.placement.high_availability.sticky.spread import shared_tags
from airflow_dagsched.placement.high_availability.sticky.weighed import cost_of_failures

Part = Callable[[Facts, Prior], tuple[float, ...]]

_DIGITS: Final = 6
"""Sums of weights are not exact."""


def is_less(facts: Facts, after: Prior, before: Prior) -> bool:
    """Whether the first part in which they differ is less after."""
    for part in PARTS:
        found, was = part(facts, after), part(facts, before)
        if found != was:
            return found < was
    return False


def _missing(facts: Facts, held: Prior) -> tuple[float, ...]:
    return (-sum(len(held.standby.get(instance, NOBODY)) for instance in facts.stateful),)


def _active(facts: Facts, held: Prior) -> tuple[float, ...]:
    return _loads(facts, ((instance, held.active[instance]) for instance in facts.stateful))


def _shared(facts: Facts, held: Prior) -> tuple[float, ...]:
    if not facts.settings.spread_tags:
        return ()
    groups = ((held.active[instance], *held.standby.get(instance, NOBODY)) for instance in facts.stateful)
    return (
        sum(shared_tags(facts, worker, [at for at in group if at != worker]) for group in groups for worker in group),
    )


def _copies(facts: Facts, held: Prior) -> tuple[float, ...]:
    return _loads(
        facts,
        (
            (instance, worker)
            for instance in facts.stateful
            for worker in (held.active[instance], *held.standby.get(instance, NOBODY))
        ),
    )


def _failures(facts: Facts, held: Prior) -> tuple[float, ...]:
    active = {instance: held.active[instance] for instance in facts.stateful}
    return cost_of_failures(facts, active, {at: held.standby.get(at, NOBODY) for at in active})


def _everything(facts: Facts, held: Prior) -> tuple[float, ...]:
    return _loads(facts, held.active.items())


def _loads(facts: Facts, pairs: Iterable[Seat]) -> tuple[float, ...]:
    """Relative, the highest first."""
    loads = [0.0] * len(facts.workers)
    for instance, worker in pairs:
        loads[worker] += facts.instances[instance].weight
    relative = (load / capacity for load, capacity in zip(loads, facts.capacity, strict=True))
    return tuple(sorted((round(load, _DIGITS) for load in relative), reverse=True))


PARTS: tuple[Part, ...] = (_missing, _active, _shared, _copies, _failures, _everything)
