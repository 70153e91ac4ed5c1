"""The groups of a plan on a time line, in characters.

launch_load    ░░▓▓▓▓▓▓▓▓▓▓▓
launch_report               ░░▓▓▓▓      ░ the application starts   ▓ it reads, computes, writes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.report.words import format_duration

WIDTH = 72
"""Characters of the whole time."""
MOST = 40
"""Groups that are drawn."""
NAME = 32
"""Characters of a name."""
STARTS, WORKS = "░", "▓"


def draw_bars(groups: Sequence[Group], makespan_s: float) -> Iterator[str]:
    """A line for each group, under one with the scale."""
    width = min(NAME, max((len(group.id) for group in groups[:MOST]), default=0))
    end = format_duration(makespan_s)
    yield f"{'time':{width}}  0{end:>{WIDTH - 1}}"
    for group in groups[:MOST]:
        yield f"{group.id[:width]:{width}}  {_draw_bar(group, makespan_s or 1.0)}"
    if len(groups) > MOST:
        yield f"{'':{width}}  and {len(groups) - MOST} more"


def _draw_bar(group: Group, makespan_s: float) -> str:
    """At least one character."""
    start, works, end = (
        round(WIDTH * at / makespan_s) for at in (group.start_s, group.start_s + group.time.start, group.end_s)
    )
    start = min(start, WIDTH - 1)
    drawn = STARTS * (works - start) + WORKS * (end - max(start, works))
    return " " * start + (drawn or WORKS)
