"""``python -m benchmarks.grouping [FOLDER] [--exact] [--json OUT]``: how good the groups are, on files of dataflows.

``FOLDER`` holds dataflows in the project's own format, ``*.json``; without it, random ones are made. Each is planned
as it is (batch: steps in slots) and with all steps streaming (resident), on one worker with 16 cores and 64 GB,
10 s for the start of an application and 100 MiB a second for spills; a step that declares no runtime takes 1 s.

Told for each: the makespan over the plan's lower bound, over the plain bound (a start and the longest path or the
core-seconds; streaming: a start and the longest step or the core-seconds), and what cutting nothing and one
application per step take. Means are geometric. Every plan is checked. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import random
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import read_file
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.costing.evaluated_grouping import GroupOf
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.exact.mode import plan_exactly
from airflow_dagsched.plan.grouping.coarsest import find_fewest
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import DEFAULTS

START_S = 10.0
CLUSTER = Cluster(
    manager="standalone",
    workers=(Worker(id="w1", host="h1", cores=16, memory_mb=64_000),),
    application_start_s=START_S,
    spill_mb_s=100.0,
)
SMALL = 60
"""Steps of the largest dataflow that the exact mode is asked for."""
PROVED = 0.002
"""A gap, as a share of the bound, at which a plan counts as optimal."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One dataflow in one mode; makespans in seconds, None where that grouping does not fit."""

    name: str
    mode: str
    steps: int
    groups: int
    makespan_s: float
    lower_bound_s: float
    plain_bound_s: float
    whole_s: float | None
    per_step_s: float | None
    chosen: str
    cpu_s: float
    violations: int
    exact_s: float | None = None
    exact_bound_s: float | None = None
    exact_cpu_s: float | None = None


def main(argv: list[str]) -> int:
    """Measure, print, write the JSON file; 1 where a plan has violations or is worse than a trivial one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grouping", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="default: random dataflows")
    parser.add_argument("--exact", action="store_true", help=f"the exact mode, too, up to {SMALL} steps")
    parser.add_argument("--json", type=Path, help="where the figures go")
    asked = parser.parse_args(argv)
    found = [one for flow in _flows(asked.folder) for one in _measured(flow, exact=asked.exact)]
    summary = {mode: _summary([one for one in found if one.mode == mode]) for mode in ("slots", "all")}
    print(json.dumps(summary, indent=1))
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps({"summary": summary, "each": [asdict(one) for one in found]}, indent=1))
    return int(any(one.violations or _worse(one) for one in found))


def _flows(folder: Path | None) -> Iterator[Dataflow]:
    if folder is None:
        yield from (_random(seed) for seed in range(40))
    else:
        yield from (read_file(Dataflow, file) for file in sorted(folder.glob("*.json")))


def _random(seed: int) -> Dataflow:
    """Layers of steps, each fed by some of the layer above."""
    rng = random.Random(seed)
    width, depth = rng.randint(1, 12), rng.randint(1, 12)
    steps = [Step(id=f"s{at}", order=at, runtime_s=rng.lognormvariate(3, 1)) for at in range(width * depth)]
    channels = [
        Channel(src=f"s{(layer - 1) * width + before}", dst=f"s{layer * width + at}", bytes=rng.randint(0, 10**9))
        for layer in range(1, depth)
        for at in range(width)
        for before in rng.sample(range(width), rng.randint(1, min(3, width)))
    ]
    return Dataflow(name=f"random-{seed}", steps=tuple(steps), channels=tuple(channels))


def _measured(flow: Dataflow, *, exact: bool) -> Iterator[Measured]:
    streaming = replace(flow, steps=tuple(replace(step, mode="streaming") for step in flow.steps))
    for mode, one in (("slots", flow), ("all", streaming)):
        try:
            yield _measure(one, mode, exact=exact and len(flow.steps) <= SMALL)
        except DoesNotFit as refusal:
            print(f"{flow.name} ({mode}): {refusal}", file=sys.stderr)


def _measure(flow: Dataflow, mode: str, *, exact: bool) -> Measured:
    begun = time.process_time()
    made = plan(flow, CLUSTER)
    spent = time.process_time() - begun
    problem = Problem.of(flow, CLUSTER, DEFAULTS)
    found = Measured(
        name=flow.name,
        mode=mode,
        steps=len(flow.steps),
        groups=len(made.groups),
        makespan_s=made.makespan_s,
        lower_bound_s=made.lower_bound_s,
        plain_bound_s=_plain_bound(problem, mode),
        whole_s=_makespan(problem, find_fewest(problem.graph, problem.rules)[1]),
        per_step_s=_makespan(problem, problem.graph.loop),
        chosen=made.compared[0].what if made.compared else "",
        cpu_s=spent,
        violations=len(check(made, flow, CLUSTER)),
    )
    return _with_exact(found, flow) if exact else found


def _with_exact(found: Measured, flow: Dataflow) -> Measured:
    begun = time.process_time()
    made = plan_exactly(flow, CLUSTER)
    spent = time.process_time() - begun
    violations = found.violations + len(check(made, flow, CLUSTER))
    return dataclasses.replace(
        found,
        exact_s=made.makespan_s,
        exact_bound_s=made.lower_bound_s,
        exact_cpu_s=spent,
        violations=violations,
    )


def _makespan(problem: Problem, group_of: GroupOf) -> float | None:
    try:
        return Evaluator(problem).evaluate_grouping(group_of).cost.makespan_s
    except DoesNotFit:
        return None


def _plain_bound(problem: Problem, mode: str) -> float:
    """A start, and the longest path (streaming: the longest step) or the core-seconds."""
    arrays, steps = problem.arrays, problem.graph.steps
    runtimes = [arrays.runtime_s[node] for node in range(len(steps))]
    longest = max(arrays.tail_s if mode == "slots" else runtimes, default=0.0)
    area = sum(seconds * step.cores * step.parallelism for seconds, step in zip(runtimes, steps, strict=True))
    return START_S + max(longest, area / CLUSTER.workers[0].cores)


def _worse(one: Measured) -> bool:
    """By more than what fewer groups are worth than one application for all, or one a step."""
    return any(other is not None and one.makespan_s > 1.01 * other + 1e-6 for other in (one.whole_s, one.per_step_s))


def _summary(found: list[Measured]) -> dict[str, float]:
    """Geometric means, and how the exact mode did."""
    solved = [one for one in found if one.exact_s is not None and one.exact_bound_s is not None]
    proved = [one for one in solved if _gap(one) <= PROVED]
    ratios = [one.makespan_s / (one.exact_s or 1.0) for one in proved]
    told = {
        "dataflows": len(found),
        "over_lower_bound": _mean(one.makespan_s / one.lower_bound_s for one in found),
        "over_plain_bound": _mean(one.makespan_s / one.plain_bound_s for one in found),
        "whole_over_plain_bound": _mean(one.whole_s / one.plain_bound_s for one in found if one.whole_s),
        "per_step_over_plain_bound": _mean(one.per_step_s / one.plain_bound_s for one in found if one.per_step_s),
        "worse_than_trivial": sum(_worse(one) for one in found),
        "violations": sum(one.violations for one in found),
        "cpu_s": sum(one.cpu_s for one in found),
    }
    if solved:
        told |= {
            "exact_tried": len(solved),
            "exact_within_5_percent": sum(_gap(one) <= 0.05 for one in solved),
            "exact_proved": len(proved),
            "heuristic_over_proved": _mean(ratios),
            "heuristic_over_proved_worst": max(ratios, default=1.0),
            "exact_cpu_s_most": max(one.exact_cpu_s or 0.0 for one in solved),
        }
    return {name: round(value, 4) for name, value in told.items()}


def _gap(one: Measured) -> float:
    return (one.exact_s or 0.0) / (one.exact_bound_s or 1.0) - 1


def _mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else 1.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
