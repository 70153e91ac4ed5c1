"""Where each stateful instance is active from now on: on its worker, or on the best that is left.

An instance leaves its worker at once only if that is gone or has no room for it any more, or if its state there is
behind and another copy is caught up (or, where none is, further along). Among several such copies the choice keeps
the load level.
"""

from __future__ import annotations

from msgspec import Struct

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY, Prior, prior_of
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.house import house
from airflow_dagsched.placement.high_availability.values import RUNNING, Lag

Rank = tuple[int, float]
"""Caught up (0), known to be behind by so much (1), unknown (2)."""


class Owners(Struct, frozen=True):
    """Workers of the stateful instances, by position."""

    active: dict[int, int]
    settled: frozenset[int]
    """Instances that just went to the only kind of worker they could: not to be moved again."""
    runs: frozenset[int]
    """Instances whose owner runs them, as far as is known."""
    prior: Prior
    standbys: dict[int, tuple[int, ...]]
    """Before this round. Where there was no prior assignment: other workers that report to have caught up."""


def is_ready(facts: Facts, owners: Owners, instance: int, worker: int) -> bool:
    """Whether it can take over: caught up, or no worse than an owner that does not run it."""
    found = rank(facts, instance, worker)
    if found[0] == 0:
        return True
    return instance not in owners.runs and found <= rank(facts, instance, owners.active[instance])


def rank(facts: Facts, instance: int, worker: int) -> Rank:
    """Less is better; an unknown lag is worse than any known one."""
    return _rank_of(facts, facts.lag(instance, worker))


def _rank_of(facts: Facts, lag: Lag) -> Rank:
    if lag == RUNNING or facts.settings.accepts_any_lag:
        return (0, 0.0)
    if lag is None:
        return (2, 0.0)
    assert not isinstance(lag, str)
    return (0, 0.0) if lag <= facts.settings.acceptable_recovery_lag else (1, lag)


def owners_of(facts: Facts, seats: Seats) -> Owners:
    """Every stateful instance has an owner, and a seat there. Raises ``DoesNotFit``."""
    prior = prior_of(facts)
    active: dict[int, int] = {}
    homeless: dict[int, list[int]] = {}
    for instance in facts.stateful:
        worker = _running_on(facts, prior, instance)
        better = _better(facts, instance, worker)
        if worker is not None and not better and seats.run(instance, worker):
            active[instance] = worker
        else:
            homeless[instance] = better
    settled = frozenset(instance for instance, workers in homeless.items() if workers)
    runs = frozenset(instance for instance, worker in active.items() if _may_run(facts, instance, worker))
    house(facts, active, homeless, seats)
    standbys = {instance: _standbys(facts, prior, instance, active[instance]) for instance in facts.stateful}
    return Owners(active, settled, runs, prior, standbys)


def _standbys(facts: Facts, prior: Prior, instance: int, owner: int) -> tuple[int, ...]:
    if facts.previous is not None:
        found = prior.standby.get(instance, NOBODY)
    else:
        reports = facts.reports[instance]
        found = tuple(at for at in facts.caught_up_workers(instance) if facts.workers[at].id in reports)
    homes = facts.homes[instance]
    return tuple(worker for worker in found if worker != owner and worker in homes)


def _running_on(facts: Facts, prior: Prior, instance: int) -> int | None:
    homes = facts.homes[instance]
    seats = (facts.seat.get(worker) for worker, lag in facts.reports[instance].items() if lag == RUNNING)
    running = [worker for worker in seats if worker is not None and worker in homes]
    before = prior.active.get(instance)
    if running and before not in running:
        return min(running)
    return before if before in homes else None


def _may_run(facts: Facts, instance: int, owner: int) -> bool:
    """Caught up, or silent: silence is no reason to move."""
    return facts.workers[owner].id not in facts.reports[instance] or facts.caught_up(instance, owner)


def _better(facts: Facts, instance: int, owner: int | None) -> list[int]:
    """Workers with the best copy; empty if the owner's is as good, or all are alike."""
    if not facts.reports[instance] or (owner is not None and _may_run(facts, instance, owner)):
        return []
    lags, homes = facts.lags_of(instance), facts.homes[instance]
    if lags.count(lags[0]) == len(lags):
        return []
    ranks = {worker: _rank_of(facts, lags[worker]) for worker in homes}
    best = min(ranks.values())
    if best == (max(ranks.values()) if owner is None else ranks[owner]):
        return []
    return [worker for worker in homes if ranks[worker] == best]
