"""Groups and ordinary tasks on a time line: ready once all above has ended, started when there is room."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from airflow_dagsched.model.order import predecessors
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.needs import task_runtime_of
from airflow_dagsched.plan.parts import quotient
from airflow_dagsched.plan.values import Group, Plan

Held = dict[str, tuple[int, int, int]]
"""Worker -> cores, memory and disk that a group holds there."""


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds from the start of the plan."""

    start_s: float
    end_s: float


@dataclass(slots=True)
class _Line:
    """The state of the walk along the time line."""

    seconds: dict[int, float]
    held: dict[int, Held]
    free: dict[str, tuple[int, int, int]]
    ready: list[tuple[float, int]] = field(default_factory=list)
    ending: list[tuple[float, int]] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)

    def arrive(self, node: int, now: float) -> None:
        """``node`` waits for nothing but room. A task needs none: it overtakes groups that wait."""
        if node in self.held:
            heapq.heappush(self.ready, (now, node))
        else:
            self._start(node, now)

    def start_groups(self, now: float) -> None:
        while self.ready and self._has_room(self.held[self.ready[0][1]]):
            node = heapq.heappop(self.ready)[1]
            self._change(node, -1)
            self._start(node, now)

    def end(self) -> tuple[float, int]:
        """Take the next that ends off the line."""
        now, node = heapq.heappop(self.ending)
        self._change(node, 1)
        return now, node

    def _start(self, node: int, now: float) -> None:
        self.spans[node] = Span(now, now + self.seconds[node])
        heapq.heappush(self.ending, (now + self.seconds[node], node))

    def _has_room(self, held: Held) -> bool:
        return all(all(a <= b for a, b in zip(need, self.free[at], strict=True)) for at, need in held.items())

    def _change(self, node: int, sign: int) -> None:
        for at, (cores, memory, disk) in self.held.get(node, {}).items():
            free = self.free[at]
            self.free[at] = free[0] + sign * cores, free[1] + sign * memory, free[2] + sign * disk


def spans(made: Plan, given: Given, seconds: dict[str, float]) -> dict[str, Span]:
    """When each group and ordinary task runs; ``seconds`` holds how long each group takes."""
    graph = given.graph
    home = list(range(len(graph.ids)))
    first = {group.id: min(graph.index[step] for step in group.steps) for group in made.groups}
    for group in made.groups:
        for step in group.steps:
            home[graph.index[step]] = first[group.id]
    length = {first[name]: value for name, value in seconds.items()}
    for task in graph.dataflow.tasks:
        length[graph.index[task.id]] = task_runtime_of(task, given.settings)
    line = _Line(length, {first[group.id]: _held(group) for group in made.groups}, _free(given))
    _run(line, quotient(graph, home))
    names = {node: name for name, node in first.items()}
    return {names.get(node, graph.ids[node]): span for node, span in line.spans.items()}


def _run(line: _Line, edges: list[list[int]]) -> None:
    """Whatever ends at one moment ends before anything starts at it."""
    waiting = {node: len(above) for node, above in enumerate(predecessors(edges))}
    for node in sorted(line.seconds):
        if not waiting[node]:
            line.arrive(node, 0.0)
    line.start_groups(0.0)
    while line.ending:
        now, node = line.end()
        for after in edges[node]:
            waiting[after] -= 1
            if not waiting[after]:
                line.arrive(after, now)
        if not line.ending or line.ending[0][0] > now:
            line.start_groups(now)


def _held(group: Group) -> Held:
    held: Held = {}
    for box in group.containers:
        cores, memory, disk = held.get(box.worker, (0, 0, 0))
        held[box.worker] = cores + box.cores, memory + box.memory_mb, disk + box.disk_mb
    return held


def _free(given: Given) -> dict[str, tuple[int, int, int]]:
    """A disk without a known limit never stands in the way."""
    unlimited = 2**62
    return {
        worker.id: (
            worker.free_cores,
            worker.free_memory_mb,
            unlimited if worker.free_disk_mb is None else worker.free_disk_mb,
        )
        for worker in given.cluster.workers
    }
