"""What the steps take, as arrays by node: made once, looked up by every evaluation of a grouping."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import natural_key
from airflow_dagsched.plan.needs import Need, need_of, runtime_of, task_runtime_of
from airflow_dagsched.plan.settings import Settings

if TYPE_CHECKING:
    from airflow_dagsched.plan.cost import Priced
    from airflow_dagsched.plan.given import Given
    from airflow_dagsched.plan.shape import Shape
    from airflow_dagsched.plan.values import Pruned

MIB = 1024 * 1024

_kind = attrgetter("cores", "memory_mb", "disk_mb", "parallelism", "pinned", "mode")


class Work(Struct, frozen=True):
    """By node: steps, then ordinary tasks."""

    needs: Sequence[Need]
    """Of one instance of each step."""
    runtime: Sequence[float]
    """Seconds of one instance, or of a task."""
    streaming: Sequence[bool]
    least: Sequence[float]
    """Seconds that all instances of a step take on the whole cluster, at least; of a task, its runtime."""
    tail: Sequence[float]
    """Seconds from the start of a node to the end of the last behind it, at least."""
    order: Sequence[int]
    """All nodes, the longest tail first: topological, and the order in which steps start."""
    workers: Sequence[Worker]
    """In natural order."""
    kind: Sequence[int]
    """Of each step: those of one kind differ in nothing but their names and runtimes, once they are alone."""
    shapes: dict[tuple[int, ...], Shape]
    """Filled while groupings are priced: many share groups."""
    lone: dict[int, Shape]
    """Filled likewise, of groups of one step: by node."""
    alone: dict[int, tuple[Shape, int]]
    """Filled likewise: the shape of a step alone, and its waves, by kind."""
    chosen: dict[tuple[int, ...], Priced]
    """The price of the grouping that was chosen, by its homes."""
    left: dict[tuple[tuple[tuple[str, ...], tuple[Pruned, ...]], ...], Given]
    """What was given once groups of these steps had left out what they do."""


def work_of(graph: Graph, cluster: Cluster, settings: Settings, idle: Collection[int] = ()) -> Work:
    """The arrays for ``graph``, of which the steps ``idle`` take no time; linear but for sorting."""
    workers = tuple(sorted(cluster.workers, key=lambda worker: natural_key(worker.id)))
    keys = [_kind(step) for step in graph.steps]
    kinds = dict(zip(keys, graph.steps, strict=True))
    number = {key: at for at, key in enumerate(kinds)}
    kind = [number[key] for key in keys]
    needs = [need_of(step, settings) for step in kinds.values()]
    waves = _waves(kinds.values(), workers)
    runtime = [0.0 if node in idle else runtime_of(step, settings) for node, step in enumerate(graph.steps)]
    least = [seconds * waves[of] for of, seconds in zip(kind, runtime, strict=True)]
    tasks = {task.id: task_runtime_of(task, settings) for task in graph.dataflow.tasks}
    ordinary = [tasks[name] for name in graph.ids[len(graph.steps) :]]
    tail = tails(graph, least + ordinary)
    return Work(
        [needs[of] for of in kind],
        runtime + ordinary,
        [step.mode == "streaming" for step in graph.steps],
        least + ordinary,
        tail,
        # A stable sort of a topological order by what never rises along an edge is topological.
        sorted(graph.order, key=[-seconds for seconds in tail].__getitem__),
        workers,
        kind,
        {},
        {},
        {},
        {},
        {},
    )


def _waves(steps: Iterable[Step], workers: Sequence[Worker]) -> list[int]:
    """In how many waves the instances of each step run if it has the cluster for itself."""
    known: dict[tuple[int, tuple[str, ...]], int] = {}
    return [
        1 if step.parallelism == 1 else math.ceil(step.parallelism / _lanes(step, workers, known)) for step in steps
    ]


def _lanes(step: Step, workers: Sequence[Worker], known: dict[tuple[int, tuple[str, ...]], int]) -> int:
    """Instances of ``step`` that run at once if it has the cluster for itself."""
    key = step.cores, step.pinned
    if key not in known:
        allowed = (worker for worker in workers if not step.pinned or worker.id in step.pinned)
        known[key] = max(1, sum(worker.free_cores // step.cores for worker in allowed))
    return known[key]


def tails(graph: Graph, least: Sequence[float]) -> list[float]:
    """Seconds from the start of a node to the end of the last behind it, if each takes ``least``.

    Steps of a loop share one tail, in which the longest of them counts. It never rises along an edge of ``graph``.
    """
    weight = [0.0] * len(least)
    for node, first in enumerate(graph.loop):
        weight[first] = max(weight[first], least[node])
    tail = [0.0] * len(least)
    for node in reversed(graph.order):
        if graph.loop[node] == node:
            tail[node] = weight[node] + max([tail[after] for after in graph.condensed[node]], default=0.0)
    return [tail[first] for first in graph.loop]
