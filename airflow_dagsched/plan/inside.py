"""When the steps of one group are predicted to end, counted from the start of its work."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.needs import runtime_of
from airflow_dagsched.plan.values import Group


@dataclass(frozen=True, slots=True)
class Inside:
    """Seconds until the last step ends, and between the end of the first and of the last."""

    compute_s: float
    spread_s: float


def inside_group(group: Group, given: Given) -> Inside:
    """Batch: in the group's order on its slots, a wide step in waves. Streaming: all from start to end."""
    ends = _resident_ends(group, given) if group.residency == "all" else _slot_ends(group, given)
    return Inside(max(ends), max(ends) - min(ends))


def _slot_ends(group: Group, given: Given) -> list[float]:
    slots = [0.0] * group.slots
    ends: dict[int, float] = {}
    ready: dict[int, float] = {}
    for node, step in _steps(group, given):
        begin = max(heapq.heappop(slots), ready.get(node, 0.0))
        ends[node] = begin + runtime_of(step, given.settings) * _waves(group, step)
        heapq.heappush(slots, ends[node])
        for after in given.graph.successors[node]:
            ready[after] = max(ready.get(after, 0.0), ends[node])
    return list(ends.values())


def _resident_ends(group: Group, given: Given) -> list[float]:
    """A resident step ends no earlier than those it reads from."""
    ends: dict[int, float] = {}
    ready: dict[int, float] = {}
    for node, step in _steps(group, given):
        ends[node] = max(runtime_of(step, given.settings), ready.get(node, 0.0))
        for after in given.graph.successors[node]:
            ready[after] = max(ready.get(after, 0.0), ends[node])
    return list(ends.values())


def _steps(group: Group, given: Given) -> Iterator[tuple[int, Step]]:
    """In the group's order; edges that lead back in a loop find their end already done and count for nothing."""
    for name in group.steps:
        node = given.graph.index[name]
        yield node, given.graph.steps[node]


def _waves(group: Group, step: Step) -> int:
    """How many times the step's instances fill the cores of the containers they may be in."""
    boxes = [box for box in group.containers if not step.pinned or box.worker in step.pinned]
    return math.ceil(step.parallelism / max(1, sum(box.cores // step.cores for box in boxes)))
