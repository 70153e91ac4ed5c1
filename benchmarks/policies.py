"""Ways to run tasks on equal workers, one task a worker at a time: what schedules are compared with.

Each is written from its own definition and shares no code with the planner's schemes.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_dagsched.model.order import reverse_edges, sort_topologically


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks by position, in seconds, and their order."""

    seconds: Sequence[float]
    successors: Sequence[Sequence[int]]
    transfer_s: Sequence[Sequence[float]]
    """For each task and each of its successors: seconds to hand over between two workers; zeros for none."""


def without_transfers(seconds: Sequence[float], successors: Sequence[Sequence[int]]) -> Tasks:
    """Tasks that hand nothing over."""
    return Tasks(seconds, successors, [[0.0] * len(nexts) for nexts in successors])


def fifo(tasks: Tasks, workers: int) -> float:
    """Makespan in seconds: first ready, first served."""
    return _listed(tasks, workers, lambda _task, now: now)


def b_level(tasks: Tasks, workers: int) -> float:
    """Makespan in seconds: the longest remaining path first."""
    rank = upward_ranks(tasks)
    return _listed(tasks, workers, lambda task, _now: -rank[task])


def airflow_default(tasks: Tasks, workers: int) -> float:
    """Makespan in seconds: most tasks downstream first, Airflow's ``weight_rule="downstream"``."""
    below = _downstream(tasks.successors)
    return _listed(tasks, workers, lambda task, _now: -below[task].bit_count())


def heft(tasks: Tasks, workers: int) -> float:
    """Makespan in seconds by HEFT (Topcuoglu, Hariri, Wu, TPDS 2002): upward rank, then the earliest end, gaps used."""
    above = reverse_edges(tasks.successors)
    transfer = {
        (task, after): seconds
        for task, nexts in enumerate(tasks.successors)
        for after, seconds in zip(nexts, tasks.transfer_s[task], strict=True)
    }
    lines: list[list[tuple[float, float]]] = [[] for _ in range(workers)]
    end, home = [0.0] * len(above), [0] * len(above)
    for task in _by_rank(tasks):
        begin, worker = min(
            (_gap(line, _arrival(task, worker, above, end, home, transfer), tasks.seconds[task]), worker)
            for worker, line in enumerate(lines)
        )
        end[task], home[task] = begin + tasks.seconds[task], worker
        insort(lines[worker], (begin, end[task]))
    return max(end, default=0.0)


def upward_ranks(tasks: Tasks) -> list[float]:
    """Longest path from the start of a task to the end of all, transfers included."""
    rank = [0.0] * len(tasks.seconds)
    for task in reversed(sort_topologically(tasks.successors)):
        paths = zip(tasks.successors[task], tasks.transfer_s[task], strict=True)
        rank[task] = tasks.seconds[task] + max((seconds + rank[after] for after, seconds in paths), default=0.0)
    return rank


def _by_rank(tasks: Tasks) -> list[int]:
    """Highest rank first; a task of no length still comes after those above it."""
    rank = upward_ranks(tasks)
    return sorted(sort_topologically(tasks.successors), key=rank.__getitem__, reverse=True)


def _arrival(
    task: int,
    worker: int,
    above: Sequence[Sequence[int]],
    end: Sequence[float],
    home: Sequence[int],
    transfer: dict[tuple[int, int], float],
) -> float:
    """When all that ``task`` reads is on ``worker``."""
    return max(
        (end[before] + (transfer[before, task] if home[before] != worker else 0.0) for before in above[task]),
        default=0.0,
    )


def _gap(line: Sequence[tuple[float, float]], ready: float, seconds: float) -> float:
    """The earliest begin from ``ready`` on in a gap of ``line``, whose spans are sorted and apart."""
    first = bisect_left(line, (ready, ready))
    begin = max(ready, line[first - 1][1]) if first else ready
    for start, stop in line[first:]:
        if begin + seconds <= start:
            break
        begin = max(begin, stop)
    return begin


def _listed(tasks: Tasks, workers: int, priority: Callable[[int, float], float]) -> float:
    """List scheduling: a free worker takes the ready task of least priority value, then of least position."""
    waiting = [len(before) for before in reverse_edges(tasks.successors)]
    ready = [(priority(task, 0.0), task) for task, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < workers:
            task = heapq.heappop(ready)[1]
            heapq.heappush(running, (now + tasks.seconds[task], task))
        now = running[0][0]
        while running and running[0][0] == now:
            for after in tasks.successors[heapq.heappop(running)[1]]:
                waiting[after] -= 1
                if not waiting[after]:
                    heapq.heappush(ready, (priority(after, now), after))
    return now


def _downstream(successors: Sequence[Sequence[int]]) -> list[int]:
    """For each task the set of all below it, as the bits of a number."""
    below = [0] * len(successors)
    for task in reversed(sort_topologically(successors)):
        for after in successors[task]:
            below[task] |= below[after] | 1 << after
    return below
