"""``python -m benchmarks.simulator``: processor time of one simulated run, by size and policy.

The largest: 100,000 steps, each a group of its own with one to eight containers, on 10,000 workers. The groups
stand in layers and each waits for up to three of the layer before it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.plan.plan_types import Container, Group, Plan, Resources, Times
from airflow_dagsched.plan.simulate.run import simulate_works
from airflow_dagsched.plan.simulate.values import POLICIES, Conditions, Work

SIZES = ((1_000, 100), (10_000, 1_000), (100_000, 10_000))
"""Steps and workers."""
LAYERS = 5
SIMULATED = tuple(name for name, policy in POLICIES.items() if not policy.rivals)
"""At these sizes none is played through before it is chosen."""
CONDITIONS = Conditions(noise=0.3, failures_per_hour=0.1, losses_per_hour=0.001)


@dataclass(frozen=True, slots=True)
class Row:
    """One run."""

    policy: str
    steps: int
    workers: int
    cpu_s: float
    makespan_s: float
    utilisation: float
    retries: int
    lost_workers: int


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("--policy", action="append", choices=SIMULATED, help="default: all")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the rows to this file")
    asked = parser.parse_args(argv)
    rows: list[Row] = []
    print(f"{'policy':12}{'steps':>9}{'workers':>9}{'CPU s':>9}{'makespan s':>12}{'used':>7}{'retries':>9}{'lost':>6}")
    for row in measured(asked.policy or SIMULATED):
        rows.append(row)
        sizes = f"{row.policy:12}{row.steps:>9}{row.workers:>9}{row.cpu_s:>9.2f}{row.makespan_s:>12.0f}"
        print(f"{sizes}{row.utilisation:>7.2f}{row.retries:>9}{row.lost_workers:>6}", flush=True)
    exponents = {name: exponent([row for row in rows if row.policy == name]) for name in {row.policy for row in rows}}
    for name, value in sorted(exponents.items()):
        print(f"{name}: CPU seconds grow with the steps to the power of {value:.2f}")
    if asked.json:
        content = {"rows": [asdict(row) for row in rows], "exponents": exponents}
        asked.json.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    return 0


def measured(policies: Sequence[str]) -> Iterator[Row]:
    """A row for each size and policy; making the plan is left out."""
    for steps, workers in SIZES:
        cluster = _cluster(workers)
        work = _work(steps, workers)
        for policy in policies:
            start = time.process_time()
            found = simulate_works([work], cluster, CONDITIONS, POLICIES[policy])
            spent = time.process_time() - start
            outcome = found.makespan_s, found.utilisation, found.retries, found.lost_workers
            yield Row(policy, steps, workers, spent, *outcome)


def exponent(rows: Sequence[Row]) -> float:
    """From the smallest to the largest."""
    first, last = rows[0], rows[-1]
    return log(last.cpu_s / first.cpu_s) / log(last.steps / first.steps)


def _cluster(workers: int) -> Cluster:
    made = (Worker(id=f"w{at}", host=f"h{at}", cores=16, memory_mb=65_536) for at in range(workers))
    return Cluster(manager="standalone", workers=tuple(made))


def _work(steps: int, workers: int) -> Work:
    rng = random.Random(steps)
    layer = max(1, steps // LAYERS)
    above = [_above(rng, at, layer) for at in range(steps)]
    flow = Dataflow(
        name="layers",
        steps=tuple(Step(id=f"s{at}", runtime_s=rng.choice([10.0, 30.0, 100.0, 300.0])) for at in range(steps)),
        channels=tuple(Channel(src=f"s{of}", dst=f"s{at}", kind="buffered") for at in range(steps) for of in above[at]),
    )
    groups = tuple(_group(rng, step, above[at], at // layer, workers) for at, step in enumerate(flow.steps))
    return Work(Plan(dataflow=flow.name, digest="", groups=groups), flow)


def _above(rng: random.Random, at: int, layer: int) -> list[int]:
    if at < layer:
        return []
    start = (at // layer - 1) * layer
    return sorted({rng.randrange(start, start + layer) for _ in range(rng.randint(1, 3))})


def _group(rng: random.Random, step: Step, above: Sequence[int], layer: int, workers: int) -> Group:
    start = layer * 300.0
    name = f"launch_{step.id}"
    return Group(
        id=name,
        steps=(step.id,),
        after=tuple(f"launch_s{of}" for of in above),
        start_s=start,
        end_s=start + 8.0 + step.runtime_s,
        reason="alone",
        time=Times(start=8.0, compute=step.runtime_s),
        containers=tuple(_container(rng, f"{name}/{at}", workers) for at in range(rng.randint(1, 8))),
    )


def _container(rng: random.Random, name: str, workers: int) -> Container:
    return Container(
        id=name,
        worker=f"w{rng.randrange(workers)}",
        required=Resources(cores=4, memory_mb=8192, disk_mb=0),
        cores=4,
        memory_mb=9216,
        disk_mb=0,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
