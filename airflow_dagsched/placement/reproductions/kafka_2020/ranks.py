"""Workers of an instance from best to worst: running, caught up, unknown, then by lag."""

from __future__ import annotations

from msgspec import Struct

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.values import RUNNING

Ranks = dict[int, float]
"""The rank of each worker; at most 0: caught up."""

# Unknown is better than any lag above 1, as the first code had it: the text ranks it last.
RUNS, CAUGHT_UP, UNKNOWN = -2.0, 0.0, 1.0


class Ranking(Struct, frozen=True):
    """How good each worker is for each stateful instance, by position."""

    ranks: dict[int, Ranks]

    def list_best_first(self, instance: int) -> list[int]:
        """Workers by rank, equal ones in natural order."""
        ranks = self.ranks[instance]
        return sorted(ranks, key=lambda worker: (ranks[worker], worker))

    def list_caught_up(self, instance: int) -> list[int]:
        """The same, caught-up ones only."""
        return [worker for worker in self.list_best_first(instance) if self.ranks[instance][worker] <= CAUGHT_UP]


def rank_workers(facts: Facts) -> Ranking:
    """Ranks as the lags say."""
    workers = range(len(facts.workers))
    return Ranking(
        {instance: {worker: _rank_worker(facts, instance, worker) for worker in workers} for instance in facts.stateful}
    )


def _rank_worker(facts: Facts, instance: int, worker: int) -> float:
    lag = facts.get_lag(instance, worker)
    if lag is None:
        return UNKNOWN
    if lag == RUNNING:
        return RUNS
    assert not isinstance(lag, str)
    return CAUGHT_UP if facts.is_caught_up(instance, worker) else float(lag)
