"""Speed of the placement policies on large requests, in CPU seconds of this process.

python -m benchmarks.placement
"""

from __future__ import annotations

import itertools
import random
import time

from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policy import policy_of
from airflow_dagsched.placement.settings import SPARK
from airflow_dagsched.placement.values import Offer

CASES = (
    ("first_fit", 100_000, 10_000, 1_000, 10.0),
    ("first_fit", 100_000, 10_000, 100_000, 10.0),
    ("round_robin", 100_000, 10_000, 1_000, 10.0),
    ("data_locality", 2_000, 200, 50, 5.0),
    ("cheapest", 2_000, 200, 50, 5.0),
)
"""Policy, instances, workers, steps, and the most CPU seconds it may take."""


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


def main() -> int:
    """Print a line for each case; 1 if one took longer than it may."""
    late = False
    for policy, instances, workers, steps, most in CASES:
        dataflow, offers = request(instances, workers, steps)
        started = time.process_time()
        made = policy_of(policy, SPARK).schedule(dataflow, offers, State())
        seconds = time.process_time() - started
        late = late or seconds > most
        what = f"{instances:>7,} instances of {steps:>7,} steps on {workers:>6,} workers"
        print(f"{policy:14} {what}: {seconds:5.2f} s, {len(made.container_plan):,} containers")
    return int(late)


if __name__ == "__main__":
    raise SystemExit(main())
