"""How far the graph that is to take over is behind the owner, by their batches.

::

    rows read by the owner     ────────────────────────┤ last batch of the owner
                                       └ x_read        │
    by the new graph                    ─────────┤     │
                                                 └ rows ┘ behind
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_dagsched.switch.advising.boundary import find_watermark
from airflow_dagsched.switch.story import EpochStory, Story


@dataclass(frozen=True, slots=True)
class Behind:
    """A new graph against the one it is to take over from; None: not known, or not yet."""

    rows: int | None = None
    """Of the sources, added up over the queries of both."""
    seconds: float | None = None
    """Of event time."""


NOT_BEHIND = Behind()
"""Of a graph that takes over from none."""


def find_behind(story: Story) -> Behind:
    """Of the successor, by the log alone."""
    old, new = story.old, story.new
    return NOT_BEHIND if old is None or new is None else Behind(_count_rows(old, new), _find_seconds(old, new))


def _count_rows(old: EpochStory, new: EpochStory) -> int | None:
    queries = [name for name in new.record.x_read if name in old.queries]
    return sum(max(0, _count_unread(old, new, name)) for name in queries) if queries else None


def _count_unread(old: EpochStory, new: EpochStory, query: str) -> int:
    read = new.queries[query].last.x_read if query in new.queries else 0
    return old.queries[query].last.x_read - new.record.x_read[query] - read


def _find_seconds(old: EpochStory, new: EpochStory) -> float | None:
    mine, others = find_watermark(new), find_watermark(old)
    return None if mine is None or others is None else max(0.0, others - mine)
