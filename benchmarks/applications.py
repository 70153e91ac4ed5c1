"""``python -m benchmarks.applications [FOLDER ...] [--moves N] [--json OUT]``: could fewer applications do as well?

Plans dataflows (files ``*.json`` of the folders; without a folder, random ones) on declared clusters. From each plan's
groups, from one group a step and from what merges of neighbours make of these, annealing merges, parts and moves:
``N`` groupings each, priced by the planner's cost model, but found without it. Told: applications of the plan over the
fewest that end within 1% of the soonest that the plan tells of; exit 1 where that is more than 1.2, or the plan itself
ends later than that.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import read_file
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step, Task
from airflow_dagsched.plan.costing.evaluated_grouping import Cost
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.partition import is_acyclic, name_by_least
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import DEFAULTS, Settings

RANDOM = 300
MOVES = 2_000
LARGEST = 400
"""Steps and tasks; larger dataflows are planned, not annealed."""
WITHIN = 1.01
MOST = 1.2


@dataclass(frozen=True, slots=True)
class Measured:
    """One dataflow on one cluster."""

    name: str
    workers: str
    steps: int
    groups: int
    fewest: int
    makespan_s: float
    soonest_s: float
    """Of all that the plan was compared with."""
    plan_s: float
    """Seconds of the processor."""

    @property
    def ratio(self) -> float:
        """Applications over the fewest found."""
        return self.groups / max(1, self.fewest)

    @property
    def is_bad(self) -> bool:
        """Whether it breaks the promise."""
        return self.ratio > MOST or self.makespan_s > WITHIN * self.soonest_s + 1e-3


def main(argv: list[str]) -> int:
    """Measure, print the worst and a summary, write the JSON file; 1 where a plan has too many applications."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.applications", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="default: random dataflows")
    parser.add_argument("--moves", type=int, default=MOVES, help="groupings tried a dataflow (default: %(default)s)")
    parser.add_argument("--random", type=int, default=RANDOM, help="random dataflows (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="where the figures go")
    asked = parser.parse_args(argv)
    found: list[Measured] = []
    for flow, cluster, told in _list_problems(asked.folders, asked.random):
        one = _measure(flow, cluster, told, asked.moves)
        if one is not None:
            found.append(one)
            if one.is_bad:
                print(json.dumps(asdict(one)), flush=True)
    print(json.dumps(_summarise(found), indent=1))
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps({"summary": _summarise(found), "each": [asdict(one) for one in found]}))
    return int(any(one.is_bad for one in found))


def _summarise(found: Sequence[Measured]) -> dict[str, float]:
    return {
        "dataflows": len(found),
        "too_many": sum(one.is_bad for one in found),
        "worst": max((one.ratio for one in found), default=1.0),
        "mean": sum(one.ratio for one in found) / max(1, len(found)),
        "plan_s": sum(one.plan_s for one in found),
        "slowest_s": max((one.plan_s for one in found), default=0.0),
    }


def _list_problems(folders: Iterable[Path], count: int) -> Iterator[tuple[Dataflow, Cluster, Settings]]:
    clusters = standalone([16]), standalone([16] * 8), standalone([4, 8, 2])
    if not folders:
        for seed in range(count):
            rng = random.Random(seed)
            yield _draw(rng, f"random-{seed}"), rng.choice(clusters), Settings(slots=rng.choice([2, 4, DEFAULTS.slots]))
    for folder in folders:
        for at, file in enumerate(sorted(folder.glob("*.json"))):
            yield read_file(Dataflow, file), clusters[at % len(clusters)], DEFAULTS


def standalone(cores: Sequence[int]) -> Cluster:
    """Workers with so many cores each."""
    workers = (Worker(id=f"w{at}", host=f"h{at}", cores=count, memory_mb=64_000) for at, count in enumerate(cores))
    return Cluster(manager="standalone", workers=tuple(workers))


def _draw(rng: random.Random, name: str) -> Dataflow:
    """Layers of steps, chains, or anything before; wide or narrow, with some late ordinary tasks."""
    count, reach = rng.randint(3, 40), rng.choice([2, 5, 40])
    wide = rng.choice([(1,), (1, 1, 2, 8), (4, 16, 40)])
    late = rng.choice([0.0, 0.0, 0.1])
    names = [f"t{at}" if rng.random() < late else f"s{at}" for at in range(count)]
    pairs = {
        (before, at)
        for at in range(1, count)
        for before in rng.choices(range(max(0, at - reach), at), k=rng.choice([0, 1, 1, 2, 3]))
    }
    joined = [(names[before], names[at]) for before, at in sorted(pairs)]
    return Dataflow(
        name=name,
        steps=tuple(
            Step(id=one, parallelism=rng.choice(wide), runtime_s=round(rng.lognormvariate(3, 1), 1))
            for one in names
            if one[0] == "s"
        ),
        tasks=tuple(Task(id=one, runtime_s=rng.choice([5, 60, 300])) for one in names if one[0] == "t"),
        channels=tuple(
            Channel(src=src, dst=dst, bytes=rng.choice([0, 10**8, 10**9]), kind=rng.choice(["pipelined", "buffered"]))
            for src, dst in joined
            if src[0] == dst[0] == "s"
        ),
        dependencies=tuple((src, dst) for src, dst in joined if not src[0] == dst[0] == "s"),
    )


def _measure(flow: Dataflow, cluster: Cluster, told: Settings, moves: int) -> Measured | None:
    begun = time.process_time()
    try:
        made = plan(flow, cluster, told)
    except DagschedError as refusal:
        print(f"{flow.name}: {refusal}", file=sys.stderr)
        return None
    spent = time.process_time() - begun
    if not made.groups:
        return None
    soonest = min(entry.makespan_s for entry in made.compared)
    fewest = len(made.groups)
    if len(flow.steps) + len(flow.tasks) <= LARGEST:
        fewest = min(fewest, _Annealing(Problem.of(flow, cluster, told), made, soonest * WITHIN).run(moves))
    return Measured(
        flow.name, str(len(cluster.workers)), len(flow.steps), len(made.groups), fewest, made.makespan_s, soonest, spent
    )


class _Annealing:
    """The fewest groups that end in time, by random merges, partings and moves."""

    def __init__(self, problem: Problem, made: Plan, limit_s: float) -> None:
        self.problem, self.evaluator, self.limit_s = problem, Evaluator(problem), limit_s
        self.rng = random.Random(1)
        index = problem.graph.index
        first = list(range(len(problem.graph.ids)))
        for group in made.groups:
            for step in group.steps:
                first[index[step]] = min(index[one] for one in group.steps)
        self.planned = first

    def run(self, moves: int) -> int:
        """Of several starts the fewest."""
        starts = self.planned, list(self.problem.graph.loop)
        return min(self.anneal(start, moves // len(starts)) for start in starts)

    def anneal(self, start: Sequence[int], moves: int) -> int:
        here, fewest = list(start), 10**9
        energy, cost = self.weigh(here)
        for at in range(moves):
            if cost is not None and cost.makespan_s <= self.limit_s:
                fewest = min(fewest, cost.groups)
            other = self.change(here)
            if other is None:
                continue
            found, price = self.weigh(other)
            heat = 0.5 * (1 - at / moves) + 1e-3
            if found <= energy or self.rng.random() < math.exp((energy - found) / heat):
                here, energy, cost = other, found, price
        return fewest

    def weigh(self, group_of: Sequence[int]) -> tuple[float, Cost | None]:
        """Groups, and as much as one for each 2% that it ends too late."""
        try:
            cost = self.evaluator.evaluate_grouping(group_of).cost
        except DagschedError:
            return math.inf, None
        return cost.groups + 50 * max(0.0, cost.makespan_s / self.limit_s - 1), cost

    def change(self, here: Sequence[int]) -> list[int] | None:
        """Two groups made one, a group parted at a number, or a step put elsewhere; None where no rule allows that."""
        graph, count = self.problem.graph, len(self.problem.graph.steps)
        groups = sorted(set(here[:count]))
        moved, group = list(here), self.rng.choice(groups)
        units = sorted({graph.loop[node] for node in range(count) if here[node] == group})
        to = self.rng.choice([*groups, len(here)])
        kind = self.rng.random()
        if kind < 0.4:
            chosen = set(units)
        elif kind < 0.8:
            chosen = {self.rng.choice(units)}
        else:
            at = self.rng.randrange(len(units))
            chosen = set(units[at:])
        for node in range(count):
            if graph.loop[node] in chosen:
                moved[node] = to
        members = [node for node in range(count) if moved[node] == to]
        if not self.problem.rules.may_share(members, graph.loop):
            return None
        named = name_by_least(moved)
        return named if is_acyclic(graph, named) else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
