"""``python -m benchmarks.regret [FOLDER]``: what it costs to plan with runtimes that are wrong, or not known.

``FOLDER`` holds dataflows with runtimes, ``*.json``; without it, layered ones are drawn: wide, deep, forked and joined,
in chains. Each is planned three times on a cluster: with its true runtimes, with each of them off by a factor between
0.5 and 1.5, and without any. The groups, their order and the lists inside them then are as planned; the seconds, of all
three plans, are those of the true runtimes. Regret is by how much the second and the third end later than the first.

Told by mode (batch: steps in slots; streaming: resident), by what was known of runtimes: plans, mean and worst regret,
and in how many it is above a tenth. Exit 1 where a mean is above what is promised: see ``MOST``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import read_file
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem

OFF = 0.5
"""By which share an estimate may be wrong, either way."""
MOST = {("batch", "off"): 0.03, ("streaming", "off"): 0.10}
"""Mean regret that is promised, by mode and by what is known of runtimes."""
DRAWN = 60
LARGEST = 120
"""Steps of the largest dataflow of a folder that is looked at."""
MODES = ("batch", "streaming")
KNOWN = ("off", "undeclared")
HIGH = 0.1
"""A regret that is counted."""


def _workers(count: int, cores: int) -> Cluster:
    workers = tuple(Worker(id=f"w{at}", host=f"h{at}", cores=cores, memory_mb=4_000 * cores) for at in range(count))
    return Cluster(manager="standalone", workers=workers, application_start_s=10.0, spill_mb_s=100.0)


CLUSTERS = (_workers(1, 16), _workers(3, 8))


@dataclass(frozen=True, slots=True)
class Regret:
    """One dataflow in one mode on one cluster; seconds with the true runtimes."""

    name: str
    mode: str
    known: str
    steps: int
    informed_s: float
    """Of the plan that knew them."""
    groups: int
    uninformed_s: float
    uninformed_groups: int

    @property
    def share(self) -> float:
        """How much later it ends, as a share."""
        return self.uninformed_s / self.informed_s - 1


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, write the JSON file; 1 where a mean is above what is promised."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="default: drawn dataflows")
    parser.add_argument("--count", type=int, default=DRAWN, help="dataflows that are drawn (default: %(default)s)")
    parser.add_argument("--mode", choices=MODES, help="default: both")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write one object a plan")
    asked = parser.parse_args(argv)
    flows = list(map(draw_layered, range(asked.count))) if asked.folder is None else list(_read_flows(asked.folder))
    modes = (asked.mode,) if asked.mode else MODES
    found = [one for mode in modes for one in measure_all(flows, mode)]
    print(f"{'mode':11}{'runtimes':12}{'plans':>6}{'mean':>8}{'worst':>8}{'above 10%':>11}")
    kept = [_tell_mean(found, mode, known) for mode in modes for known in KNOWN]
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    return int(not all(kept))


def _tell_mean(found: Sequence[Regret], mode: str, known: str) -> bool:
    """Print a row; whether its mean is as promised."""
    shares = [one.share for one in found if (one.mode, one.known) == (mode, known)]
    if not shares:
        return True
    mean, above = fmean(shares), sum(share > HIGH for share in shares)
    print(f"{mode:11}{known:12}{len(shares):>6}{mean:>8.1%}{max(shares):>8.1%}{above:>11}")
    return mean <= MOST.get((mode, known), mean)


def measure_all(flows: Sequence[Dataflow], mode: str) -> Iterator[Regret]:
    """Each dataflow on each cluster that holds its steps."""
    for at, flow in enumerate(flows):
        true = replace(flow, steps=tuple(replace(step, mode=mode) for step in flow.steps))
        for cluster in CLUSTERS:
            try:
                yield from measure_regret(true, cluster, random.Random(at))
            except DoesNotFit as refusal:
                print(f"{flow.name} ({mode}): {refusal}", file=sys.stderr)


def measure_regret(true: Dataflow, cluster: Cluster, rng: random.Random) -> Iterator[Regret]:
    """Of plans made with wrong runtimes, and without any."""
    problem = Problem.of(true, cluster)
    informed = plan(true, cluster)
    informed_s = price_plan(informed, problem)
    for known, told in zip(KNOWN, (_mistake(true, rng), _forget(true)), strict=True):
        made = plan(told, cluster)
        yield Regret(
            name=true.name,
            mode=true.steps[0].mode,
            known=known,
            steps=len(true.steps),
            informed_s=informed_s,
            groups=len(informed.groups),
            uninformed_s=price_plan(made, problem),
            uninformed_groups=len(made.groups),
        )


def price_plan(made: Plan, problem: Problem) -> float:
    """Seconds that the plan's groups, launched in its order with its lists inside, take with the problem's runtimes."""
    graph = problem.graph
    listed = [[graph.index[name] for name in group.steps] for group in made.groups]
    group_of, turns = list(range(len(graph.ids))), dict.fromkeys(range(len(graph.steps), len(graph.ids)), 0)
    for turn, nodes in enumerate(listed, 1):
        turns[min(nodes)] = turn
        for node in nodes:
            group_of[node] = min(nodes)
    # Groups start in the order of the plan, so their lists one behind the other are an order of all steps.
    order = [*(node for nodes in listed for node in nodes), *range(len(graph.steps), len(graph.ids))]
    return Evaluator(problem, order).evaluate_grouping(group_of, turns=turns).cost.makespan_s


def _mistake(flow: Dataflow, rng: random.Random) -> Dataflow:
    """True is what is then declared, times a factor."""
    wrong = [step.runtime_s / rng.uniform(1 - OFF, 1 + OFF) for step in flow.steps]
    steps = [replace(step, runtime_s=seconds) for step, seconds in zip(flow.steps, wrong, strict=True)]
    return replace(flow, steps=tuple(steps))


def _forget(flow: Dataflow) -> Dataflow:
    return replace(flow, steps=tuple(replace(step, runtime_s=0.0) for step in flow.steps))


def _read_flows(folder: Path) -> Iterator[Dataflow]:
    """Those with runtimes, and not too many steps."""
    for file in sorted(folder.glob("*.json")):
        flow = read_file(Dataflow, file)
        if any(step.runtime_s for step in flow.steps) and len(flow.steps) <= LARGEST:
            yield flow


def draw_layered(seed: int) -> Dataflow:
    """Layers of steps, each fed by some of the layers above; shape, width and runtimes by the seed."""
    rng = random.Random(seed)
    width, depth = ((5, 6), (12, 3), (3, 15), (8, 5), (24, 2), (1, 30))[seed % 6]
    spread = rng.choice((0.5, 1.0, 1.5))
    layers = [[f"s{layer}_{at}" for at in range(rng.randint(max(1, width // 2), width))] for layer in range(depth)]
    steps = [
        Step(
            id=name,
            parallelism=rng.choice((1, 1, 1, 2, 4)),
            memory_mb=rng.choice((500, 1000, 3000)),
            runtime_s=round(rng.lognormvariate(3.5, spread), 3),
        )
        for layer in layers
        for name in layer
    ]
    channels = [
        Channel(src=src, dst=name, bytes=rng.choice((10**6, 10**8, 10**9)))
        for before, layer in pairwise(layers)
        for name in layer
        for src in rng.sample(before, rng.randint(1, min(3, len(before))))
    ]
    return Dataflow(name=f"layered-{seed}", steps=tuple(steps), channels=tuple(channels))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
