"""A plan made part-way through a run as a page a person reads: what changed and why, then the plan.

planned again: 38.0 s left, 16.0 s sooner than with the groups so far
  launch_b: new: what is left ends 16.0 s sooner, in 38.0 s instead of 54.0 s
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from airflow_dagsched.plan.plan_types import Replanned
from airflow_dagsched.plan.report.page import WIDTH, explain_plan
from airflow_dagsched.plan.report.sentences import say_change
from airflow_dagsched.plan.report.words import format_duration


def explain_replanned(replanned: Replanned) -> str:
    """The changes, a line each, and the page of the plan."""
    return "\n".join([*_list_changes(replanned), "", explain_plan(replanned.plan)])


def _list_changes(replanned: Replanned) -> Iterator[str]:
    saved = f", {format_duration(replanned.saved_s)} sooner than with the groups so far" if replanned.saved_s else ""
    yield f"planned again: {format_duration(replanned.left_s)} left{saved}"
    for change in replanned.changes:
        yield from textwrap.wrap(say_change(change), WIDTH, initial_indent="  ", subsequent_indent="    ")
    if not replanned.changes:
        yield "  no change: what is left runs as it was planned"
