"""``python -m benchmarks.workflows FOLDER``: makespans on equal workers, six ways, over the lower bound.

Reads dataflows (JSON) with measured runtimes and runs one task a worker, whatever its cores; nothing is handed
over unless ``--mb-s`` says how fast, and then only HEFT counts it. ``ours`` is the scheduler alone, ``planned`` what
a plan makes of as many applications as tasks, with the effort a plan may spend. Smaller ones than the workers are
left out, as all ways are alike there. Exit 1 where a schedule of ours breaks a rule.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import read_file
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import reverse_edges
from airflow_dagsched.model.validate import build_valid_graph
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.rcpsp.project import Project
from airflow_dagsched.plan.rcpsp.schedule import Schedule, schedule
from benchmarks.policies import Tasks, airflow_default, b_level, fifo, heft
from benchmarks.rcpsp_check import find_violations

EFFORT = 100_000
MIB = 1024 * 1024
MICROSECONDS = 1_000_000
POLICIES = {"b_level": b_level, "heft": heft, "airflow_default": airflow_default, "fifo": fifo}


@dataclass(frozen=True, slots=True)
class Run:
    """A task of ours on its worker, in seconds."""

    task: str
    worker: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Found:
    """One instance; its fields are those of the JSON file."""

    name: str
    tasks: int
    lower_bound_s: float
    makespan_s: dict[str, float]
    """By way."""
    cpu_s: float
    """Processor seconds of ours, from project to schedule."""
    verified: bool
    schedule: tuple[Run, ...]

    def ratio(self, way: str) -> float:
        """Makespan over lower bound."""
        return self.makespan_s[way] / self.lower_bound_s if self.lower_bound_s else 1.0


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """What the caller asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workflows", description=__doc__)
    parser.add_argument("folder", type=Path, help="with dataflows as .json files")
    parser.add_argument("--workers", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write one object an instance")
    parser.add_argument("--effort", type=int, default=EFFORT, help="activities placed at most (default: %(default)s)")
    parser.add_argument("--mb-s", type=float, help="MiB a second between two workers (default: no transfers)")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Schedule, print the table, write the JSON file."""
    asked = arguments(argv)
    try:
        graphs = [build_valid_graph(read_file(Dataflow, file)) for file in sorted(asked.folder.glob("*.json"))]
    except DagschedError as error:
        print(error, file=sys.stderr)
        return 2
    large = [graph for graph in graphs if len(graph.ids) >= asked.workers]
    found = [solved(graph, asked.workers, asked.effort, asked.mb_s) for graph in large]
    print(table(found))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    return int(not all(one.verified for one in found))


def solved(graph: Graph, workers: int, effort: int, mb_s: float | None) -> Found:
    """One workflow, every way."""
    tasks = tasks_of(graph, mb_s)
    project = project_of(tasks, workers)
    before = time.process_time()
    made = schedule(project, effort=effort)
    cpu_s = time.process_time() - before
    runs = runs_of(graph, tasks, made, workers)
    ours = {"ours": max((run.end_s for run in runs), default=0.0), "planned": planned_s(graph, tasks, workers)}
    others = {name: policy(tasks, workers) for name, policy in POLICIES.items()}
    return Found(
        name=graph.dataflow.name,
        tasks=len(graph.ids),
        lower_bound_s=made.lower_bound / MICROSECONDS,
        makespan_s=ours | others,
        cpu_s=round(cpu_s, 4),
        verified=not find_violations(project, made.starts),
        schedule=runs,
    )


def tasks_of(graph: Graph, mb_s: float | None) -> Tasks:
    """The nodes of ``graph`` as tasks, steps and ordinary ones alike."""
    runtime = {step.id: step.runtime_s for step in graph.steps}
    runtime |= {task.id: task.runtime_s for task in graph.dataflow.tasks}
    seconds = [runtime[name] for name in graph.ids]
    moved: dict[tuple[int, int], float] = {}
    for channel in graph.dataflow.channels if mb_s else ():
        edge = graph.index[channel.src], graph.index[channel.dst]
        moved[edge] = moved.get(edge, 0.0) + channel.bytes / MIB / (mb_s or 1.0)
    transfers = [[moved.get((node, after), 0.0) for after in nexts] for node, nexts in enumerate(graph.successors)]
    return Tasks(seconds, graph.successors, transfers)


def project_of(tasks: Tasks, workers: int) -> Project:
    """One resource, the workers; microseconds, at least one: a task of no length also waits for a worker."""
    return Project(
        durations=tuple(max(1, round(seconds * MICROSECONDS)) for seconds in tasks.seconds),
        demands=((1,),) * len(tasks.seconds),
        successors=tuple(tuple(nexts) for nexts in tasks.successors),
        capacities=(workers,),
    )


def planned_s(graph: Graph, tasks: Tasks, workers: int) -> float:
    """The makespan of the plan where every task is an application that starts in no time, on a worker of one core."""
    names = graph.ids
    flow = Dataflow(
        name=graph.dataflow.name,
        steps=tuple(
            Step(id=name, order=at, runtime_s=max(seconds, 1 / MICROSECONDS), isolate=True)
            for at, (name, seconds) in enumerate(zip(names, tasks.seconds, strict=True))
        ),
        dependencies=tuple((names[at], names[after]) for at, nexts in enumerate(tasks.successors) for after in nexts),
    )
    each = (Worker(id=f"w{at}", host=f"h{at}", cores=1, memory_mb=64_000) for at in range(workers))
    return plan(flow, Cluster(manager="standalone", workers=tuple(each), application_start_s=0.0)).makespan_s


def runs_of(graph: Graph, tasks: Tasks, made: Schedule, workers: int) -> tuple[Run, ...]:
    """The schedule on workers, each task on the one that is free first, its times counted again in seconds."""
    above = reverse_edges(tasks.successors)
    ends = [0.0] * len(made.starts)
    free = [(0.0, worker) for worker in range(workers)]
    runs = []
    for task in sorted(range(len(ends)), key=made.starts.__getitem__):
        idle_from, worker = heapq.heappop(free)
        start = max([idle_from, *(ends[before] for before in above[task])])
        ends[task] = start + tasks.seconds[task]
        heapq.heappush(free, (ends[task], worker))
        runs.append(Run(graph.ids[task], worker, start, ends[task]))
    return tuple(runs)


def table(found: Sequence[Found]) -> str:
    """Makespan over lower bound by way: mean, 95th percentile, worst, and how many are at the bound."""
    head = f"{len(found)} workflows\n{'':16}{'mean':>8}{'p95':>8}{'max':>8}{'at bound':>10}"
    lines = [_line(way, [one.ratio(way) for one in found]) for way in ("ours", "planned", *POLICIES)] if found else []
    cpu = [one.cpu_s for one in found]
    cost = f"ours: {fmean(cpu):.2f} cpu s mean, {max(cpu):.2f} max" if cpu else ""
    return "\n".join([head, *lines, cost])


def _line(way: str, ratios: Sequence[float]) -> str:
    late = sorted(ratios)[int(0.95 * (len(ratios) - 1))]
    at_bound = sum(ratio < 1 + 1e-4 for ratio in ratios)
    return f"{way:16}{fmean(ratios):>8.4f}{late:>8.3f}{max(ratios):>8.3f}{at_bound:>10}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
