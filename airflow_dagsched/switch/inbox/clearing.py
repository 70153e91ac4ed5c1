"""What may go of an inbox that graphs read: rows of windows that all of them have emitted, and old dead letters.

A graph has a watermark only by rows that it has read, and rows are read in the order of their entries. So what was
entered before any row as late as the watermark was read. Only who takes over from a graph that runs no more reads again
what another has read, and that begins at windows behind the watermark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from airflow_dagsched.switch.advising.boundary import find_watermark
from airflow_dagsched.switch.inbox.entries import Cleared, Routed
from airflow_dagsched.switch.inbox.inbox_story import InboxStory
from airflow_dagsched.switch.story import Story
from airflow_dagsched.switch.windows import round_down

KEPT_ENTRIES = 100
"""The last ones stay: a graph may be about to open a file that it has just listed."""
CLEARED_AT_ONCE = 50
"""Entries, for each entry that says that they were cleared."""
DEAD_S = 7 * 86_400.0
"""Seconds for which a dead letter is kept."""
DEAD_BYTES = 1 << 30
"""Of dead letters of a source: of more the oldest go."""


def list_passed(story: Story, inbox: InboxStory) -> tuple[Routed, ...]:
    """Entries, the oldest first, whose rows no graph needs that reads now or takes over from one that does."""
    needed_from = _find_needed_from(story)
    return tuple(takewhile(lambda each: _is_passed(each, inbox.last, needed_from), inbox.filled))


def _is_passed(entry: Routed, last: int, needed_from: float) -> bool:
    return entry.n <= last - KEPT_ENTRIES and (entry.newest is None or entry.newest < needed_from)


def _find_needed_from(story: Story) -> float:
    """Rows before this time are needed no more; 0: all may be."""
    readers = [each for each in story.epochs.values() if each.record.channel == "inbox" and not each.has_ended]
    watermarks = [find_watermark(each) for each in readers]
    # Where nobody owns a window yet, another first graph may have to read all of it.
    if story.old is None or not readers or any(each is None for each in watermarks):
        return 0.0
    longest = max(each.record.x_window for each in readers)
    least = min(each for each in watermarks if each is not None)
    return round_down(least, longest) if longest > 0 else 0.0


def make_cleared(inbox: InboxStory, upto: int, n: int, at: float) -> Cleared | None:
    """The entry that says that files are gone; None: there is one."""
    return None if upto <= inbox.cleared_upto else Cleared(n=n, at=at, upto=upto)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A file of them."""

    name: str
    bytes: int
    at: float
    """When it was written, in seconds since 1970."""


def choose_dead(files: Iterable[DeadLetters], now: float) -> tuple[str, ...]:
    """Names of the files that go: what is old, and the oldest of what is too much."""
    going, room = [], DEAD_BYTES
    for each in sorted(files, key=lambda each: (-each.at, each.name)):
        room -= each.bytes
        if room < 0 or each.at < now - DEAD_S:
            going.append(each.name)
    return tuple(going)
