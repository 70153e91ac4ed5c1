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
from typing import NamedTuple

from msgspec import Struct, field

from airflow_dagsched.errors import DagschedError, DoesNotFit
from airflow_dagsched.model.order import find_cycle, find_strong_components
from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.costing.capacity import FreeCapacity, SpillCapacity
from airflow_dagsched.plan.costing.executor_shape import ExecutorShape

# Without it 10,000 ready groups that wait would each be tried at each end of any group.
PASSED = 32
"""Ready groups that are tried behind the first that finds no room: keeps many ready ones cheap."""


class Circular(DagschedError):
    """Jobs that wait for each other: none of them can ever start.

    :param jobs: a shortest cycle, the first is the last again.
    """

    def __init__(self, jobs: list[int]) -> None:
        self.jobs = jobs

    def __str__(self) -> str:
        return f"jobs {' -> '.join(map(str, self.jobs))} wait for each other"


class Job(NamedTuple):
    """One group, or one ordinary task: it has no shape."""

    seconds: float
    shape: ExecutorShape | None


class Span(NamedTuple):
    """Seconds from the start of the plan, and the number of each container's worker."""

    start_s: float
    end_s: float
    at_workers: tuple[int, ...]


class _Line(Struct):
    """The state of the walk along the time line."""

    jobs: Mapping[int, Job]
    order: Sequence[int]
    """All jobs: of what is ready, the first comes first."""
    turns: Mapping[int, int]
    """The place of each in it."""
    room: FreeCapacity
    spills: SpillCapacity | None
    """None: there is room for all."""
    front: list[int] = field(default_factory=list)
    """Turns of the first of the ready groups, sorted: those that are tried at every moment."""
    ready: list[int] = field(default_factory=list)
    """The others, a heap."""
    ending: list[tuple[float, int]] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)

    def admit_node(self, node: int, now: float) -> None:
        """``node`` waits for nothing but room. A task needs none: it overtakes groups that wait."""
        if self.jobs[node].shape is None:
            self._start_node(node, now, ())
            return
        turn = self.turns[node]
        # Into the sorted front only where it belongs there: for the many behind it a heap is cheaper.
        if self.front and turn < self.front[-1]:
            insort(self.front, turn)
        else:
            heapq.heappush(self.ready, turn)

    def start_groups(self, now: float) -> None:
        passed: list[int] = []
        at = 0
        # On a full cluster nothing is tried at all.
        while not self.room.is_full and len(passed) < PASSED:
            if at == len(self.front):
                if not self.ready:
                    break
                self.front.append(heapq.heappop(self.ready))
            turn = self.front[at]
            at += 1
            if not self._try_start(self.order[turn], now):
                passed.append(turn)
        # Those that found no room stay in front, in order; those that started are gone.
        self.front[:at] = passed

    def end_next(self) -> tuple[float, int]:
        """Take the next that ends off the line."""
        now, node = heapq.heappop(self.ending)
        shape = self.jobs[node].shape
        if shape is not None:
            # Before spills: a reader's container and the dataset it read become free at the same moment.
            self.room.give_back(shape, self.spans[node].at_workers)
        if self.spills:
            self.spills.end_reader(node)
        return now, node

    def _try_start(self, node: int, now: float) -> bool:
        shape = self.jobs[node].shape
        # Room for spills first: it is one comparison, workers are a search.
        if shape is None or (self.spills and self.spills.count_missing(node)):
            return False
        at_workers = self.room.take_first(shape)
        if not at_workers:
            return False
        if self.spills:
            self.spills.take_room(node)
        self._start_node(node, now, at_workers)
        return True

    def _start_node(self, node: int, now: float, at_workers: tuple[int, ...]) -> None:
        end = now + self.jobs[node].seconds
        self.spans[node] = Span(now, end, at_workers)
        heapq.heappush(self.ending, (end, node))


def simulate_timeline(
    jobs: Mapping[int, Job],
    edges: Mapping[int, Sequence[int]],
    room: FreeCapacity,
    spills: SpillCapacity | None,
    *,
    turns: Mapping[int, int] | None = None,
) -> dict[int, Span]:
    """When and where each job runs; ``edges`` lead from each job to those that wait for it, without cycles.

    ``spills``: None where there is room for all. ``turns``: of the jobs that are ready, the least comes first; None:
    the longest remaining path. Whatever ends at one moment ends before anything starts at it. Raises ``DoesNotFit``
    where spills in flight leave no room for those that would make room; ``Circular`` for edges with a cycle, which
    whoever has ``turns`` has ruled out.
    """
    above = count_waits(jobs, edges)
    order = _rank_longest_first(jobs, edges, above) if turns is None else sorted(sorted(jobs), key=turns.__getitem__)
    line = _Line(jobs, order, {node: turn for turn, node in enumerate(order)}, room, spills)
    for node in jobs:
        if not above[node]:
            line.admit_node(node, 0.0)
    line.start_groups(0.0)
    while line.ending:
        now, node = line.end_next()
        for after in edges[node]:
            above[after] -= 1
            if not above[after]:
                line.admit_node(after, now)
        # Only behind the last end of this moment: else a small group could take what a larger one before it gets a
        # moment later.
        if not line.ending or line.ending[0][0] > now:
            line.start_groups(now)
    # Nothing runs, something waits: only spills can do that, for on an idle cluster each group has room by its
    # sizing.
    if spills and (line.front or line.ready):
        raise _refuse_stuck(line, spills)
    return line.spans


def count_waits(jobs: Iterable[int], edges: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """How many others each job waits for."""
    above = dict.fromkeys(jobs, 0)
    for nexts in edges.values():
        for after in nexts:
            above[after] += 1
    return above


def measure_job_tails(jobs: Mapping[int, Job], edges: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Seconds from the start of each job to the end of the last behind it, at least; the last jobs first.

    Raises ``Circular``.
    """
    return _measure_tails(jobs, edges, count_waits(jobs, edges))


def _measure_tails(
    jobs: Mapping[int, Job], edges: Mapping[int, Sequence[int]], waited: Mapping[int, int]
) -> dict[int, float]:
    above = dict(waited)
    done = [node for node in jobs if not above[node]]
    for node in done:  # grows while it is walked: Kahn's order
        for after in edges[node]:
            above[after] -= 1
            if not above[after]:
                done.append(after)
    if len(done) < len(above):
        # Here and not before: the count above finds a cycle for nothing, naming it takes a search.
        raise Circular(_find_cycle(edges))
    tail: dict[int, float] = {}
    for node in reversed(done):
        nexts, seconds = edges[node], jobs[node].seconds
        # A list: a generator costs more in max, and this runs at every evaluation.
        tail[node] = seconds + max([tail[after] for after in nexts]) if nexts else seconds
    return tail


def _find_cycle(edges: Mapping[int, Sequence[int]]) -> list[int]:
    """Through the least job that is on any."""
    successors = [edges.get(node, ()) for node in range(max(edges) + 1)]
    owner = find_strong_components(successors)
    return find_cycle(successors, next(of for node, of in enumerate(owner) if of != node), owner)


def _rank_longest_first(
    jobs: Mapping[int, Job], edges: Mapping[int, Sequence[int]], waited: Mapping[int, int]
) -> list[int]:
    """The longest remaining path first; ties by number."""
    tail = _measure_tails(jobs, edges, waited)
    # Sorted twice: ``reverse`` keeps the order of equals, so ties go by number.
    return sorted(sorted(jobs), key=tail.__getitem__, reverse=True)


def _refuse_stuck(line: _Line, spills: SpillCapacity) -> DoesNotFit:
    missing = min(spills.count_missing(line.order[turn]) for turn in (*line.front, *line.ready))
    limit = spills.limit
    return DoesNotFit("the sum of spills in flight", "spill_mb", -(-(limit + missing) // MIB), limit // MIB, "MiB")
