"""What the steps take, as arrays by node: made once, looked up by every evaluation of a grouping."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import natural_key
from airflow_dagsched.plan.needs import Need, resolve_step_needs, resolve_step_runtime, resolve_task_runtime
from airflow_dagsched.plan.problem.free_room import FreeRoom
from airflow_dagsched.plan.settings import Settings

_kind = attrgetter("cores", "memory_mb", "disk_mb", "parallelism", "pinned", "mode")


class StepArrays(Struct, frozen=True):
    """By node: steps, then ordinary tasks."""

    needs: Sequence[Need]
    """Of one instance of each step."""
    runtime_s: Sequence[float]
    """Seconds of one instance, or of a task."""
    streaming: Sequence[bool]
    least_s: Sequence[float]
    """Seconds that all instances of a step take on the whole cluster, at least; of a task, its runtime."""
    tail_s: Sequence[float]
    """Seconds from the start of a node to the end of the last behind it, at least."""
    longest_first: Sequence[int]
    """All nodes, the longest tail first: a topological order."""
    workers: Sequence[Worker]
    """In natural order."""
    room: FreeRoom
    """What is free on them."""
    kind: Sequence[int]
    """Of each step: those of one kind differ in nothing but their names and runtimes, once they are alone."""

    @classmethod
    def of(cls, graph: Graph, cluster: Cluster, settings: Settings, idle_steps: Collection[int] = ()) -> StepArrays:
        """The arrays for ``graph``, of which the steps ``idle_steps`` take no time; linear but for sorting."""
        # The order of workers decides where first fit puts things: w2 before w10, whatever the order in the file.
        workers = tuple(sorted(cluster.workers, key=lambda worker: natural_key(worker.id)))
        keys = [_kind(step) for step in graph.steps]
        # Steps are alike by the hundred: what follows from what they declare is worked out once a kind.
        kinds = dict(zip(keys, graph.steps, strict=True))
        number = {key: at for at, key in enumerate(kinds)}
        kind = [number[key] for key in keys]
        needs = [resolve_step_needs(step, settings) for step in kinds.values()]
        waves = _count_waves(kinds.values(), workers)
        runtime_s = [
            0.0 if node in idle_steps else resolve_step_runtime(step, settings) for node, step in enumerate(graph.steps)
        ]
        least_s = [seconds * waves[of] for of, seconds in zip(kind, runtime_s, strict=True)]
        tasks = {task.id: resolve_task_runtime(task, settings) for task in graph.dataflow.tasks}
        tasks_s = [tasks[name] for name in graph.ids[len(graph.steps) :]]
        tail_s = measure_step_tails(graph, least_s + tasks_s)
        return cls(
            [needs[of] for of in kind],
            runtime_s + tasks_s,
            [step.mode == "streaming" for step in graph.steps],
            least_s + tasks_s,
            tail_s,
            # A stable sort of a topological order by what never rises along an edge is topological.
            sorted(graph.order, key=[-seconds for seconds in tail_s].__getitem__),
            workers,
            FreeRoom.of(workers),
            kind,
        )

    def limit_workers(self, allowed: Collection[str]) -> StepArrays:
        """The same on no workers but those ``allowed``."""
        workers = tuple(worker for worker in self.workers if worker.id in allowed)
        return replace(self, workers=workers, room=FreeRoom.of(workers))


def _count_waves(steps: Iterable[Step], workers: Sequence[Worker]) -> list[int]:
    """In how many waves the instances of each step run if it has the cluster for itself."""
    known: dict[tuple[int, tuple[str, ...]], int] = {}
    return [
        1 if step.parallelism == 1 else math.ceil(step.parallelism / _count_lanes(step, workers, known))
        for step in steps
    ]


def _count_lanes(step: Step, workers: Sequence[Worker], known: dict[tuple[int, tuple[str, ...]], int]) -> int:
    """Instances of ``step`` that run at once if it has the cluster for itself."""
    key = step.cores, step.pinned
    if key not in known:
        allowed = (worker for worker in workers if not step.pinned or worker.id in step.pinned)
        # At least one: that a step fits nowhere is for sizing to refuse, with what is needed and what there is.
        known[key] = max(1, sum(worker.free_cores // step.cores for worker in allowed))
    return known[key]


def measure_step_tails(graph: Graph, least_s: Sequence[float]) -> list[float]:
    """Seconds from the start of a node to the end of the last behind it, if each takes ``least_s``.

    Steps of a loop share one tail, in which the longest of them counts. It never rises along an edge of ``graph``.
    """
    weight = [0.0] * len(least_s)
    for node, first in enumerate(graph.loop):
        weight[first] = max(weight[first], least_s[node])
    tail = [0.0] * len(least_s)
    for node in reversed(graph.order):
        if graph.loop[node] == node:
            tail[node] = weight[node] + max([tail[after] for after in graph.condensed[node]], default=0.0)
    return [tail[first] for first in graph.loop]
