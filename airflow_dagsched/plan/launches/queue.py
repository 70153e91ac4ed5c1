"""Groups and ordinary tasks on a time line: ready once all above has ended, started when there is room.

    w1 ▐aaaaaaa▌▐ccc▌      c waits for a, and for room on some worker; of what is ready the group with
    w2 ▐bbb▌   ▐ddddd▌     the most behind it starts first, and one that finds no room lets others pass.

The parallel schedule generation scheme of resource-constrained project scheduling (Kelley 1963; Kolisch
1996), ordered by the longest remaining path, with containers packed onto workers first fit. Room for
spills is one more resource. Ordinary tasks take no room on the cluster.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct, field

from airflow_dagsched.errors import DagschedError, DoesNotFit
from airflow_dagsched.model.order import find_cycle, strong_components
from airflow_dagsched.plan.launches.room import Room, SpillRoom
from airflow_dagsched.plan.shape import Shape

PASSED = 32
"""Ready groups that are tried behind the first that finds no room: keeps many ready ones cheap."""
MIB = 1024 * 1024


@dataclass
class Circular(DagschedError):
    """Jobs that wait for each other: none of them can ever start."""

    jobs: list[int]
    """A shortest cycle: the first is the last again."""

    def __str__(self) -> str:
        return f"jobs {' -> '.join(map(str, self.jobs))} wait for each other"


class Job(NamedTuple):
    """One group, or one ordinary task: it has no shape."""

    seconds: float
    shape: Shape | None


class Span(NamedTuple):
    """Seconds from the start of the plan, and the number of each container's worker."""

    start_s: float
    end_s: float
    places: tuple[int, ...]


class _Line(Struct):
    """The state of the walk along the time line."""

    jobs: Mapping[int, Job]
    order: Sequence[int]
    """All jobs: of what is ready, the first comes first."""
    turns: Mapping[int, int]
    """The place of each in it."""
    room: Room
    spills: SpillRoom | None
    """None: there is room for all."""
    front: list[int] = field(default_factory=list)
    """Turns of the first of the ready groups, sorted: those that are tried at every moment."""
    ready: list[int] = field(default_factory=list)
    """The others, a heap."""
    ending: list[tuple[float, int]] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)

    def arrive(self, node: int, now: float) -> None:
        """``node`` waits for nothing but room. A task needs none: it overtakes groups that wait."""
        if self.jobs[node].shape is None:
            self._start(node, now, ())
            return
        turn = self.turns[node]
        if self.front and turn < self.front[-1]:
            insort(self.front, turn)
        else:
            heapq.heappush(self.ready, turn)

    def start_groups(self, now: float) -> None:
        passed: list[int] = []
        at = 0
        while not self.room.full and len(passed) < PASSED:
            if at == len(self.front):
                if not self.ready:
                    break
                self.front.append(heapq.heappop(self.ready))
            turn = self.front[at]
            at += 1
            if not self._started(self.order[turn], now):
                passed.append(turn)
        self.front[:at] = passed

    def end(self) -> tuple[float, int]:
        """Take the next that ends off the line."""
        now, node = heapq.heappop(self.ending)
        shape = self.jobs[node].shape
        if shape is not None:
            self.room.give(shape, self.spans[node].places)
        if self.spills:
            self.spills.end(node)
        return now, node

    def _started(self, node: int, now: float) -> bool:
        shape = self.jobs[node].shape
        if shape is None or (self.spills and self.spills.lacks(node)):
            return False
        found = self.room.taken(shape)
        if not found:
            return False
        if self.spills:
            self.spills.take(node)
        self._start(node, now, found)
        return True

    def _start(self, node: int, now: float, places: tuple[int, ...]) -> None:
        end = now + self.jobs[node].seconds
        self.spans[node] = Span(now, end, places)
        heapq.heappush(self.ending, (end, node))


def run(
    jobs: Mapping[int, Job],
    edges: Mapping[int, Sequence[int]],
    room: Room,
    spills: SpillRoom | None,
    *,
    turns: Mapping[int, int] | None = None,
) -> dict[int, Span]:
    """When and where each job runs; ``edges`` lead from each job to those that wait for it, without cycles.

    ``spills``: None where there is room for all. ``turns``: of the jobs that are ready, the least comes first; None:
    the longest remaining path. Whatever ends at one moment ends before anything starts at it. Raises ``DoesNotFit``
    where spills in flight leave no room for those that would make room; ``Circular`` for edges with a cycle, which
    whoever has ``turns`` has ruled out.
    """
    above = waited_for(jobs, edges)
    order = _longest_first(jobs, edges, above) if turns is None else sorted(sorted(jobs), key=turns.__getitem__)
    line = _Line(jobs, order, {node: turn for turn, node in enumerate(order)}, room, spills)
    for node in jobs:
        if not above[node]:
            line.arrive(node, 0.0)
    line.start_groups(0.0)
    while line.ending:
        now, node = line.end()
        for after in edges[node]:
            above[after] -= 1
            if not above[after]:
                line.arrive(after, now)
        if not line.ending or line.ending[0][0] > now:
            line.start_groups(now)
    if spills and (line.front or line.ready):
        raise _stuck(line, spills)
    return line.spans


def waited_for(jobs: Iterable[int], edges: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """How many others each job waits for."""
    above = dict.fromkeys(jobs, 0)
    for nexts in edges.values():
        for after in nexts:
            above[after] += 1
    return above


def tails(jobs: Mapping[int, Job], edges: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Seconds from the start of each job to the end of the last behind it, at least; the last jobs first.

    Raises ``Circular``.
    """
    return _tails(jobs, edges, waited_for(jobs, edges))


def _tails(jobs: Mapping[int, Job], edges: Mapping[int, Sequence[int]], waited: Mapping[int, int]) -> dict[int, float]:
    above = dict(waited)
    done = [node for node in jobs if not above[node]]
    for node in done:
        for after in edges[node]:
            above[after] -= 1
            if not above[after]:
                done.append(after)
    if len(done) < len(above):
        raise Circular(_cycle(edges))
    tail: dict[int, float] = {}
    for node in reversed(done):
        nexts, seconds = edges[node], jobs[node].seconds
        tail[node] = seconds + max([tail[after] for after in nexts]) if nexts else seconds
    return tail


def _cycle(edges: Mapping[int, Sequence[int]]) -> list[int]:
    """Through the least job that is on any."""
    successors = [edges.get(node, ()) for node in range(max(edges) + 1)]
    owner = strong_components(successors)
    return find_cycle(successors, next(of for node, of in enumerate(owner) if of != node), owner)


def _longest_first(jobs: Mapping[int, Job], edges: Mapping[int, Sequence[int]], waited: Mapping[int, int]) -> list[int]:
    """The longest remaining path first; ties by number."""
    tail = _tails(jobs, edges, waited)
    return sorted(sorted(jobs), key=tail.__getitem__, reverse=True)


def _stuck(line: _Line, spills: SpillRoom) -> DoesNotFit:
    lacks = min(spills.lacks(line.order[turn]) for turn in (*line.front, *line.ready))
    limit = spills.limit
    return DoesNotFit("the sum of spills in flight", "spill_mb", -(-(limit + lacks) // MIB), limit // MIB, "MiB")
