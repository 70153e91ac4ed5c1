"""The groups of a plan on a time line, in characters.

launch_load    ░░▓▓▓▓▓▓▓▓▓▓▓
launch_report               ░░▓▓▓▓      ░ the application starts   ▓ it reads, computes, writes

Of groups that are alike there is one line, from when the first of them starts to when the last ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.report.alike import Alike
from airflow_dagsched.plan.report.words import format_duration

WIDTH = 72
"""Characters of the whole time."""
MOST = 40
"""Lines that are drawn."""
NAME = 32
"""Characters of a name."""
STARTS, WORKS = "░", "▓"


def draw_bars(alike: Sequence[Alike], makespan_s: float) -> Iterator[str]:
    """A line for each group, or groups that are alike, under one with the scale."""
    width = min(NAME, max((len(one.name) for one in alike[:MOST]), default=0))
    end = format_duration(makespan_s)
    yield f"{'time':{width}}  0{end:>{WIDTH - 1}}"
    for one in alike[:MOST]:
        yield f"{one.shorten_name(width):{width}}  {_draw_bar(one, makespan_s or 1.0)}"
    if len(alike) > MOST:
        yield f"{'':{width}}  and {sum(len(one.groups) for one in alike[MOST:])} more"


def _draw_bar(alike: Alike, makespan_s: float) -> str:
    """At least one character."""
    works_s = alike.start_s + alike.first.time.start
    start, works, end = (round(WIDTH * at / makespan_s) for at in (alike.start_s, works_s, alike.end_s))
    start = min(start, WIDTH - 1)
    drawn = STARTS * (works - start) + WORKS * (end - max(start, works))
    return " " * start + (drawn or WORKS)
