"""The prior assignment: by position, without the workers that are gone, and how even it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from msgspec import Struct

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.values import Instance

NOBODY: tuple[int, ...] = ()


class Prior(Struct, frozen=True):
    """Live workers by instance, in natural order; instances that no longer exist are left out."""

    active: dict[int, int]
    standby: dict[int, tuple[int, ...]]
    warmup: dict[int, tuple[int, ...]]


def read_prior(facts: Facts) -> Prior:
    """Empty if there was none."""
    before = facts.previous or Assignment()
    return Prior(
        active={
            facts.position[instance]: facts.worker_at[worker]
            for instance, worker in before.active.items()
            if instance in facts.position and worker in facts.worker_at
        },
        standby=_keep_live(facts, before.standby),
        warmup=_keep_live(facts, before.warmup),
    )


def _keep_live(facts: Facts, held: Mapping[str, Iterable[str]]) -> dict[int, tuple[int, ...]]:
    return {
        facts.position[instance]: tuple(
            sorted({facts.worker_at[worker] for worker in workers if worker in facts.worker_at})
        )
        for instance, workers in held.items()
        if instance in facts.position
    }


def is_candidate(facts: Facts) -> bool:
    """Whether the prior assignment could be kept: only live workers, every instance once, with its standbys."""
    before = facts.previous
    if before is None or before.active.keys() != facts.position.keys():
        return False
    if not facts.position.keys() >= before.standby.keys() | before.warmup.keys():
        return False
    named = chain(before.active.values(), *before.standby.values(), *before.warmup.values())
    if not all(worker in facts.worker_at for worker in named):
        return False
    return all(_has_standbys(facts, before, instance) for instance in facts.instances)


def _has_standbys(facts: Facts, before: Assignment, instance: Instance) -> bool:
    """A warm-up counts as one; a stateless instance has none, and no worker has two copies of one instance."""
    held = (*before.standby.get(instance.id, ()), *before.warmup.get(instance.id, ()))
    # A set no larger than the copies: the active's worker, or one of theirs, comes twice.
    if len({before.active[instance.id], *held}) <= len(held):
        return False
    return len(held) >= count_wanted_standbys(facts) if instance.stateful else not held


def count_wanted_standbys(facts: Facts) -> int:
    """Standbys of each instance: what the settings ask for, no more than there are other workers."""
    return min(facts.settings.num_standbys, len(facts.workers) - 1)


def compute_skew(facts: Facts, assignment: Assignment) -> tuple[int, int]:
    """Most minus least on a worker: of active instances, then of all copies."""
    active = dict.fromkeys(facts.worker_at, 0)
    for worker in assignment.active.values():
        active[worker] += 1
    copies = dict(active)
    for worker in chain(*assignment.standby.values(), *assignment.warmup.values()):
        copies[worker] += 1
    return _compute_spread(active), _compute_spread(copies)


def _compute_spread(counts: Mapping[str, int]) -> int:
    return max(counts.values(), default=0) - min(counts.values(), default=0)
