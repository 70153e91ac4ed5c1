"""A plan made part-way through a run as a page a person reads: what changed and why, then the plan.

planned again: 38.0 s left, 16.0 s sooner than with the groups so far
  launch_b: new: what is left ends 16.0 s sooner, in 38.0 s instead of 54.0 s
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from airflow_dagsched.plan.again.replan import Replanned
from airflow_dagsched.plan.pages.page import WIDTH, explain
from airflow_dagsched.plan.words import duration


def explain_again(found: Replanned) -> str:
    """The changes, a line each, and the page of the plan."""
    return "\n".join([*_changes(found), "", explain(found.plan)])


def _changes(found: Replanned) -> Iterator[str]:
    saved = f", {duration(found.saved_s)} sooner than with the groups so far" if found.saved_s else ""
    yield f"planned again: {duration(found.left_s)} left{saved}"
    for change in found.changes:
        yield from textwrap.wrap(str(change), WIDTH, initial_indent="  ", subsequent_indent="    ")
    if not found.changes:
        yield "  no change: what is left runs as it was planned"
