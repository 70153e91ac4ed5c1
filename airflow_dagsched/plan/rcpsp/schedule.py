"""From a project to a schedule with as much effort as it is worth."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from airflow_dagsched.plan.rcpsp.bounds import lower_bound
from airflow_dagsched.plan.rcpsp.project import Network, Project, build_network, order_by_activity
from airflow_dagsched.plan.rcpsp.search import search_schedules
from airflow_dagsched.plan.rcpsp.serial import FOREVER

QUICK = 2_000
"""Effort that a parse can afford: some milliseconds for 60 activities."""
THOROUGH = 800_000
"""Effort for the command line: about a second of a processor."""
MICROSECONDS = 1_000_000
"""In a second."""


class Schedule(Struct, frozen=True):
    """When each activity starts, and what is known of how good that is; time units of the project."""

    starts: tuple[int, ...]
    """By activity of the project."""
    makespan: int
    lower_bound: int
    """No schedule is shorter; equal to the makespan if it is proved to be the best."""


def scale_seconds(seconds: Sequence[float]) -> tuple[int, ...]:
    """The durations of a project in whole microseconds: so equal plans get equal schedules on every machine.

    None is so long that their sum could not be told from never: a century for some hundred activities.
    """
    longest = FOREVER // (2 * max(1, len(seconds)))
    return tuple(min(round(one * MICROSECONDS), longest) for one in seconds)


def schedule(project: Project, *, effort: int = QUICK) -> Schedule:
    """A schedule of ``project``: the same for equal projects and effort, on every machine.

    ``effort`` is the number of activities placed, over all schedules made: about a microsecond each. Three
    schedules (the longest remaining path first, read back and forth) are made however large the project is.
    Raises ``InvalidInput`` and ``DoesNotFit`` as ``build_network`` does.
    """
    net = build_network(project)
    bound = lower_bound(net)
    ends = search_schedules(net, bound, effort // max(1, len(net)))
    return Schedule(_count_back(net, ends), max(ends, default=0), bound)


def find_starts(project: Project, bound: int, *, effort: int) -> tuple[int, ...]:
    """When each activity of ``project`` starts, where the caller knows a makespan than which none need be shorter.

    To find a bound costs as much as some schedules. Raises as ``schedule`` does.
    """
    net = build_network(project)
    return _count_back(net, search_schedules(net, bound, effort // max(1, len(net))))


def _count_back(net: Network, ends: Sequence[int]) -> tuple[int, ...]:
    """From ends by position in the network to starts by activity."""
    return order_by_activity(net, [end - duration for end, duration in zip(ends, net.durations, strict=True)])
