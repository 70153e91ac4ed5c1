"""``python -m benchmarks.launches``: ten launches at one moment on one cluster, by policy, against FIFO.

Each set is ten random dataflows, each planned as if it were alone: some wide, some long, some with an ordinary task in
between. Per policy and noise of runtimes: mean and worst completion as a part of FIFO's (geometric means over the
sets), the largest of each over all sets, and in how many sets it was worse than FIFO by more than a percent.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import exp, log
from pathlib import Path
from statistics import fmean

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step, Task
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.simulate.run import simulate_works
from airflow_dagsched.plan.simulate.values import POLICIES, Conditions, Policy, Work

LAUNCHES = 10
SETS = 100
NOISES = (0.0, 0.3)
CLUSTER = Cluster(
    manager="standalone",
    workers=tuple(Worker(id=f"w{at}", host=f"h{at}", cores=8, memory_mb=65_536) for at in range(4)),
)
COMPARED = tuple(name for name in POLICIES if name not in ("fifo", "plan"))
SLACK = 1.01


@dataclass(frozen=True, slots=True)
class Row:
    """A policy against FIFO."""

    policy: str
    noise: float
    sets: int
    mean: float
    """Geometric mean over the sets: mean completion as a part of FIFO's."""
    worst: float
    """The same of the worst completion."""
    largest_mean: float
    largest_worst: float
    sets_worse_mean: int
    sets_worse_worst: int


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, write the JSON file; exit 1 where no policy beats FIFO on both on average."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launches", description=__doc__)
    parser.add_argument("--sets", type=int, default=SETS, help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the rows to this file")
    asked = parser.parse_args(argv)
    rows = list(measured(asked.sets))
    print(f"{'policy':12}{'noise':>7}{'mean':>8}{'worst':>8}{'largest':>17}{'sets worse than FIFO':>24}")
    for row in rows:
        largest = f"{row.largest_mean:.2f} {row.largest_worst:.2f}"
        worse = f"{row.sets_worse_mean} {row.sets_worse_worst}"
        print(f"{row.policy:12}{row.noise:>7.1f}{row.mean:>8.3f}{row.worst:>8.3f}{largest:>17}{worse:>24}")
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1, sort_keys=True) + "\n")
    return int(not any(row.mean < 1 and row.worst < 1 for row in rows))


def measured(sets: int) -> Iterator[Row]:
    """A row for each noise and policy."""
    works = [launches(seed) for seed in range(sets)]
    for noise in NOISES:
        fifo = [completions(each, POLICIES["fifo"], noise) for each in works]
        for name in COMPARED:
            found = [completions(each, POLICIES[name], noise) for each in works]
            yield _row(name, noise, fifo, found)


def launches(seed: int) -> list[Work]:
    """Ten dataflows submitted at once, each planned as if it were alone."""
    rng = random.Random(seed)
    flows = [_dataflow(rng, at) for at in range(LAUNCHES)]
    return [Work(plan(flow, CLUSTER), flow) for flow in flows]


def completions(works: Sequence[Work], policy: Policy, noise: float) -> tuple[float, ...]:
    """Seconds from the submission of each work to its end."""
    ends = simulate_works(works, CLUSTER, Conditions(noise=noise), policy).completion_s
    assert None not in ends, "nothing fails here"
    return tuple(end or 0.0 for end in ends)


def _row(name: str, noise: float, fifo: Sequence[Sequence[float]], found: Sequence[Sequence[float]]) -> Row:
    means = [fmean(ours) / fmean(theirs) for ours, theirs in zip(found, fifo, strict=True)]
    worsts = [max(ours) / max(theirs) for ours, theirs in zip(found, fifo, strict=True)]
    worse = [sum(one > SLACK for one in ratios) for ratios in (means, worsts)]
    return Row(name, noise, len(found), _geometric(means), _geometric(worsts), max(means), max(worsts), *worse)


def _geometric(ratios: Sequence[float]) -> float:
    return exp(fmean(map(log, ratios)))


def _dataflow(rng: random.Random, at: int) -> Dataflow:
    """Two to five steps in a chain, some cut by an ordinary task, some with a side arm."""
    steps = [_step(rng, f"s{number}") for number in range(rng.randint(2, 5))]
    channels, tasks, dependencies = [], [], []
    for one, (before, after) in enumerate(pairwise(steps)):
        if rng.random() < 0.4:
            tasks.append(Task(id=f"t{one}", runtime_s=rng.choice([5.0, 30.0])))
            dependencies += [(before.id, f"t{one}"), (f"t{one}", after.id)]
        else:
            channels.append(Channel(src=before.id, dst=after.id, bytes=rng.choice([10**7, 10**9])))
    return Dataflow(
        name=f"flow{at}",
        steps=tuple(steps),
        channels=tuple(channels),
        tasks=tuple(tasks),
        dependencies=tuple(dependencies),
    )


def _step(rng: random.Random, name: str) -> Step:
    width, seconds = rng.choice([1, 2, 4, 8, 16, 32]), rng.choice([10.0, 30.0, 60.0, 300.0])
    return Step(id=name, parallelism=width, runtime_s=seconds, memory_mb=1000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
