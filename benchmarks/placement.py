"""Speed of the placement policies on large requests, in CPU seconds of this process.

python -m benchmarks.placement
"""

from __future__ import annotations

import gc
import itertools
import random
import time
from dataclasses import dataclass

from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.model.state import Lag, State
from airflow_dagsched.placement.policy import load_policy
from airflow_dagsched.placement.settings import SPARK
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan


@dataclass(frozen=True, slots=True)
class Case:
    """So many instances of so many steps on so many workers, and the most CPU seconds it may take."""

    policy: str
    instances: int
    workers: int
    steps: int
    most_s: float
    strategy: str = ""
    """Of stateful instances with a standby each, some of which have to move: their prior assignment has one worker
    less."""


CASES = (
    Case("first_fit", 100_000, 10_000, 1_000, 10.0),
    Case("first_fit", 100_000, 10_000, 100_000, 10.0),
    Case("round_robin", 100_000, 10_000, 1_000, 10.0),
    Case("data_locality", 2_000, 200, 50, 5.0),
    Case("cheapest", 2_000, 200, 50, 5.0),
    *(
        Case("high_availability", instances, workers, 10, 1.0, strategy)
        for instances, workers in ((1_000, 1_000), (6_000, 2))
        for strategy in ("sticky", "kafka")
    ),
)


def request(instances: int, workers: int, steps: int, seed: int = 1) -> tuple[Dataflow, list[Offer]]:
    """Unlike instances on unlike workers, with room for all but not for much more."""
    rng = random.Random(seed)
    made = [
        Step(
            id=f"s{at}",
            mode="streaming",
            parallelism=instances // steps,
            cores=rng.choice([1, 1, 2]),
            memory_mb=rng.randint(200, 3000),
            disk_mb=rng.randint(1, 100),
            runtime_s=10,
        )
        for at in range(steps)
    ]
    channels = [Channel(src=a.id, dst=b.id, bytes=2**30) for a, b in itertools.pairwise(made[:50])]
    offers = [
        Offer(
            id=f"w{at}",
            worker=f"w{at}",
            host=f"h{at}",
            memory_mb=rng.choice([32_000, 64_000]),
            disk_mb=rng.choice([None, 8000]),
            cores=rng.choice([16, 24]),
            cost=rng.choice([1.0, 1.5]),
        )
        for at in range(workers)
    ]
    return Dataflow(name="large", steps=tuple(made), channels=tuple(channels)), offers


def stateful_request(case: Case) -> tuple[Dataflow, list[Offer]]:
    """Equal instances that keep state, on workers with room for twice as many."""
    steps = tuple(
        Step(
            id=f"s{at}",
            mode="streaming",
            parallelism=case.instances // case.steps,
            memory_mb=100,
            stateful=True,
            state_mb=50,
        )
        for at in range(case.steps)
    )
    cores = 2 * -(-case.instances // case.workers)
    offers = [
        Offer(id=f"w{at}", worker=f"w{at}", host=f"h{at}", memory_mb=1000 + cores * 200, cores=cores)
        for at in range(case.workers)
    ]
    return Dataflow(name="stateful", steps=steps), offers


def measure(case: Case) -> tuple[float, TaskSchedulePlan]:
    """CPU seconds of the policy alone, and what it made."""
    settings, state = SPARK, State()
    if case.strategy:
        settings = replace(settings, strategy=case.strategy, num_standbys=1)
        dataflow, offers = stateful_request(case)
        state = after(load_policy(case.policy, settings).schedule(dataflow, offers[1:], state))
    else:
        dataflow, offers = request(case.instances, case.workers, case.steps)
    policy = load_policy(case.policy, settings)
    gc.collect()
    started = time.process_time()
    made = policy.schedule(dataflow, offers, state)
    return time.process_time() - started, made


def after(made: TaskSchedulePlan) -> State:
    """Each copy has caught up."""
    assert made.assigned is not None
    before = made.assigned.assignment
    lags = [Lag(instance=at, worker=worker, rows=0, running=True) for at, worker in before.active.items()]
    lags += [Lag(instance=at, worker=worker, rows=0) for at, held in before.standby.items() for worker in held]
    return State(previous=before, lags=tuple(lags))


def main() -> int:
    """Print a line for each case; 1 if one took longer than it may."""
    late = False
    for case in CASES:
        seconds, made = measure(case)
        late = late or seconds > case.most_s
        what = f"{case.instances:>7,} instances of {case.steps:>7,} steps on {case.workers:>6,} workers"
        name = f"{case.policy} {case.strategy}".strip()
        print(f"{name:24} {what}: {seconds:5.2f} s, {len(made.container_plan):,} containers")
    return int(late)


if __name__ == "__main__":
    raise SystemExit(main())
