"""Workers of an instance from best to worst: running, caught up, unknown, then by lag."""

from __future__ import annotations

from msgspec import Struct

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.values import RUNNING

Ranks = dict[int, float]
"""By worker. At most 0: caught up."""

RUNS, CAUGHT_UP, UNKNOWN = -2.0, 0.0, 1.0


class Ranking(Struct, frozen=True):
    """Of the stateful instances, by position."""

    ranks: dict[int, Ranks]

    def best_first(self, instance: int) -> list[int]:
        """Workers by rank, equal ones in natural order."""
        ranks = self.ranks[instance]
        return sorted(ranks, key=lambda worker: (ranks[worker], worker))

    def caught_up(self, instance: int) -> list[int]:
        """The same, caught-up ones only."""
        return [worker for worker in self.best_first(instance) if self.ranks[instance][worker] <= CAUGHT_UP]


def ranking_of(facts: Facts) -> Ranking:
    """From the lags."""
    workers = range(len(facts.workers))
    return Ranking(
        {instance: {worker: _rank(facts, instance, worker) for worker in workers} for instance in facts.stateful}
    )


def _rank(facts: Facts, instance: int, worker: int) -> float:
    lag = facts.lag(instance, worker)
    if lag is None:
        return UNKNOWN
    if lag == RUNNING:
        return RUNS
    assert not isinstance(lag, str)
    return CAUGHT_UP if facts.caught_up(instance, worker) else float(lag)
