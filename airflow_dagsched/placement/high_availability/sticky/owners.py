"""Where each stateful instance is active from now on: on its worker, or on the best that is left.

An instance leaves its worker at once only if that is gone or has no room for it any more, or if its state there is
behind and another copy is caught up (or, where none is, further along). Among several such copies the choice keeps
the load level.
"""

from __future__ import annotations

from msgspec import Struct

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY, Prior, read_prior
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.initial_assignment import place_unassigned
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
    worker_rank = rank_copy(facts, instance, worker)
    if worker_rank[0] == 0:
        return True
    return instance not in owners.runs and worker_rank <= rank_copy(facts, instance, owners.active[instance])


def rank_copy(facts: Facts, instance: int, worker: int) -> Rank:
    """Less is better; an unknown lag is worse than any known one."""
    return _rank_lag(facts, facts.get_lag(instance, worker))


def _rank_lag(facts: Facts, lag: Lag) -> Rank:
    if lag == RUNNING or facts.settings.accepts_any_lag:
        return (0, 0.0)
    # Last, behind any number: Kafka's -3 comes first instead, a quirk that ``reproductions.kafka`` keeps.
    if lag is None:
        return (2, 0.0)
    assert not isinstance(lag, str)
    return (0, 0.0) if lag <= facts.settings.acceptable_recovery_lag else (1, lag)


def find_owners(facts: Facts, seats: Seats) -> Owners:
    """Every stateful instance has an owner, and a seat there. Raises ``DoesNotFit``."""
    prior = read_prior(facts)
    active: dict[int, int] = {}
    homeless: dict[int, list[int]] = {}
    for instance in facts.stateful:
        worker = _find_running(facts, prior, instance)
        better = _find_better(facts, instance, worker)
        # The seat last: asking for it takes it.
        if worker is not None and not better and seats.activate_instance(instance, worker):
            active[instance] = worker
        else:
            homeless[instance] = better
    settled = frozenset(instance for instance, workers in homeless.items() if workers)
    runs = frozenset(instance for instance, worker in active.items() if _may_be_running(facts, instance, worker))
    place_unassigned(facts, active, homeless, seats)
    standbys = {instance: _find_standbys(facts, prior, instance, active[instance]) for instance in facts.stateful}
    return Owners(active, settled, runs, prior, standbys)


def _find_standbys(facts: Facts, prior: Prior, instance: int, owner: int) -> tuple[int, ...]:
    if facts.previous is not None:
        standbys = prior.standby.get(instance, NOBODY)
    else:
        # A state smaller than the limit counts as caught up everywhere: only who reports it has a copy.
        reports = facts.reports[instance]
        standbys = tuple(at for at in facts.find_caught_up(instance) if facts.workers[at].id in reports)
    homes = facts.allowed[instance]
    return tuple(worker for worker in standbys if worker != owner and worker in homes)


def _find_running(facts: Facts, prior: Prior, instance: int) -> int | None:
    homes = facts.allowed[instance]
    seats = (facts.worker_at.get(worker) for worker, lag in facts.reports[instance].items() if lag == RUNNING)
    running = [worker for worker in seats if worker is not None and worker in homes]
    before = prior.active.get(instance)
    # Who runs it owns it, whatever was planned: a hand-over may have failed since, or come early.
    if running and before not in running:
        return min(running)
    return before if before in homes else None


def _may_be_running(facts: Facts, instance: int, owner: int) -> bool:
    """Caught up, or silent: silence is no reason to move."""
    return facts.workers[owner].id not in facts.reports[instance] or facts.is_caught_up(instance, owner)


def _find_better(facts: Facts, instance: int, owner: int | None) -> list[int]:
    """Workers with the best copy; empty if the owner's is as good, or all are alike."""
    if not facts.reports[instance] or (owner is not None and _may_be_running(facts, instance, owner)):
        return []
    lags, homes = facts.list_lags(instance), facts.allowed[instance]
    # All alike, as on a first start: nowhere is better (Kafka: equal lags never move).
    if lags.count(lags[0]) == len(lags):
        return []
    ranks = {worker: _rank_lag(facts, lags[worker]) for worker in homes}
    best = min(ranks.values())
    # The owner's copy is as good as the best; or, without an owner, none stands out.
    if best == (max(ranks.values()) if owner is None else ranks[owner]):
        return []
    return [worker for worker in homes if ranks[worker] == best]
