"""``python -m benchmarks.stateful``: CPU seconds of one assignment of stateful instances, by size and strategy.

Each case is asked four times, each time with the last answer as prior and every worker reporting every lag.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.policy import place_instances
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.values import RUNNING, Instance, Lag, Worker

STRATEGIES = ("sticky", "kafka")
TOTAL_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Case:
    """So many instances of so many steps, on so many workers, with so many standbys each."""

    instances: int
    steps: int
    workers: int
    standbys: int

    def __str__(self) -> str:
        return f"{self.instances:,} x {self.workers:,}, {self.steps} steps, {self.standbys} standbys"


CASES = (Case(1_000, 10, 1_000, 1), Case(6_000, 10, 2, 1), Case(6_000, 6_000, 2, 1), Case(1_000, 10, 100, 50))


def main() -> None:
    """Print a line per case and strategy: first start, again, with one worker more, with one worker less."""
    for case in CASES:
        for strategy in STRATEGIES:
            seconds = measure(case, strategy)
            print(f"{case!s:45} {strategy:7}", *(f"{one:6.3f}" for one in seconds))


def measure(case: Case, strategy: str) -> list[float]:
    """CPU seconds of ``place_instances`` alone, without making its input."""
    names = [f"s{at % case.steps}" for at in range(case.instances)]
    instances = [Instance(f"{name}/{at // case.steps}", name) for at, name in enumerate(names)]
    settings = Settings(strategy=strategy, num_standbys=case.standbys)  # type: ignore[arg-type]
    previous, found = Assignment(), []
    for first, last in ((1, case.workers), (1, case.workers), (1, case.workers + 1), (2, case.workers + 1)):
        workers = [Worker(f"w{at}") for at in range(first, last + 1)]
        lags = {instance.id: _lags(previous, instance.id, workers) for instance in instances}
        gc.collect()
        begun = time.process_time()
        previous = place_instances(
            instances, workers, lags, settings, previous=previous if previous.active else None
        ).assignment
        found.append(time.process_time() - begun)
    return found


def _lags(before: Assignment, instance: str, workers: list[Worker]) -> dict[str, Lag]:
    """Every worker reports, so that none of them is passed over."""
    lags: dict[str, Lag] = {worker.id: TOTAL_ROWS for worker in workers}
    for worker in (*before.standby.get(instance, ()), *before.warmup.get(instance, ())):
        lags[worker] = 0.0
    if instance in before.active:
        lags[before.active[instance]] = RUNNING
    return lags


if __name__ == "__main__":
    main()
