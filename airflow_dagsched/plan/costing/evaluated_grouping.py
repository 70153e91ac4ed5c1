"""A grouping of the steps with all that follows from it, and the cost by which groupings are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from airflow_dagsched.plan.costing.executor_shape import ExecutorShape
from airflow_dagsched.plan.costing.timeline import Job, Span
from airflow_dagsched.plan.costing.traffic import Traffic

GroupOf = Sequence[int]
"""For each node the first node of its group; an ordinary task is its own."""


class Cost(NamedTuple):
    """What is compared, in this order."""

    makespan_s: float
    core_seconds: float
    """Cores held, times the seconds for which they are."""
    spilled_bytes: int
    groups: int


class EvaluatedGrouping(Struct, frozen=True):
    """A grouping and what it would take; groups by their first node."""

    group_of: GroupOf
    members: Mapping[int, Sequence[int]]
    """The steps of each group, in the order in which they start."""
    edges: Mapping[int, Sequence[int]]
    """From each group and ordinary task to those that wait for it."""
    shapes: Mapping[int, ExecutorShape]
    """A group whose steps are all left out has none, and takes no time."""
    traffic: Traffic
    jobs: Mapping[int, Job]
    spans: Mapping[int, Span]
    cost: Cost


def name_group(first: int, members: Mapping[int, Sequence[int]], ids: Sequence[str]) -> str:
    """The id of the group whose first step is ``first``: of the only one, ``launch``."""
    # The id is an Airflow task's id: with one group it must not change when the first step is renamed.
    return "launch" if len(members) == 1 else f"launch_{ids[first]}"


def find_ready_times(evaluated: EvaluatedGrouping) -> dict[int, float]:
    """For each group and ordinary task the second in which all it waits for has ended."""
    ready = dict.fromkeys(evaluated.spans, 0.0)
    for node, nexts in evaluated.edges.items():
        for after in nexts:
            # Not where the group starts: that may be later, when there was no room.
            ready[after] = max(ready[after], evaluated.spans[node].end_s)
    return ready
