"""From a project to a schedule with as much effort as it is worth."""

from __future__ import annotations

from msgspec import Struct

from airflow_dagsched.plan.rcpsp.bounds import lower_bound
from airflow_dagsched.plan.rcpsp.project import Project, build_network, order_by_activity
from airflow_dagsched.plan.rcpsp.search import search_schedules

QUICK = 2_000
"""Effort that a parse can afford: some milliseconds for 60 activities."""
THOROUGH = 800_000
"""Effort for the command line: about a second of a processor."""


class Schedule(Struct, frozen=True):
    """When each activity starts, and what is known of how good that is; time units of the project."""

    starts: tuple[int, ...]
    """By activity of the project."""
    makespan: int
    lower_bound: int
    """No schedule is shorter; equal to the makespan if it is proved to be the best."""


def schedule(project: Project, *, effort: int = QUICK) -> Schedule:
    """A schedule of ``project``: the same for equal projects and effort, on every machine.

    ``effort`` is the number of activities placed, over all schedules made: about a microsecond each. Three
    schedules (the longest remaining path first, read back and forth) are made however large the project is.
    Raises ``InvalidInput`` and ``DoesNotFit`` as ``build_network`` does.
    """
    net = build_network(project)
    bound = lower_bound(net)
    ends = search_schedules(net, bound, effort // max(1, len(net)))
    starts = [end - duration for end, duration in zip(ends, net.durations, strict=True)]
    return Schedule(order_by_activity(net, starts), max(ends, default=0), bound)
