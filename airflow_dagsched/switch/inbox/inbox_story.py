"""What the log of an inbox comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.switch.inbox.entries import Cleared, Entry, Held, Routed


class IllegalEntry(DagschedError):
    """An entry that may not come where it is. Nothing has changed."""

    def __init__(self, entry: Entry, story: InboxStory) -> None:
        self.entry, self.story = entry, story

    def __str__(self) -> str:
        return f"{self.entry} may not come now: the inbox has {self.story}"


@dataclass(frozen=True, slots=True)
class InboxStory:
    """All that the log of an inbox says that somebody may still have to know."""

    last: int = 0
    """Number of the newest entry."""
    routed: Routed | None = None
    """The last one with rows."""
    hold: Held | None = None
    """The last one."""
    cleared: Cleared | None = None
    """The last one."""
    filled: tuple[Routed, ...] = ()
    """Those with files, but for what was cleared."""

    @property
    def batch(self) -> int:
        """The last batch that has an entry; -1: none has."""
        return self.routed.batch if self.routed else -1

    @property
    def cleared_upto(self) -> int:
        """Number of the last entry whose rows are removed; 0: none's are."""
        return self.cleared.upto if self.cleared else 0

    @property
    def newest(self) -> float | None:
        """Newest event time of all rows that an epoch may have; None: there was none."""
        return self.routed.newest if self.routed else None

    @property
    def dead(self) -> dict[str, int]:
        """Why -> rows that no epoch has."""
        return dict(self.routed.dead) if self.routed else {}


def fold_entry(story: InboxStory, entry: Entry) -> InboxStory:
    """The story with the next entry. Raises ``IllegalEntry``."""
    if entry.n != story.last + 1 or not _is_next(story, entry):
        raise IllegalEntry(entry, story)
    return _apply(story, entry)


def _is_next(story: InboxStory, entry: Entry) -> bool:
    if isinstance(entry, Routed):
        return entry.batch == story.batch + 1
    if isinstance(entry, Cleared):
        return story.cleared_upto < entry.upto < entry.n
    return story.hold is None or entry.epoch > story.hold.epoch


def _apply(story: InboxStory, entry: Entry) -> InboxStory:
    if isinstance(entry, Routed):
        filled = (*story.filled, entry) if entry.files and entry.n > story.cleared_upto else story.filled
        return replace(story, last=entry.n, routed=entry, filled=filled)
    if isinstance(entry, Cleared):
        filled = tuple(each for each in story.filled if each.n > entry.upto)
        return replace(story, last=entry.n, cleared=entry, filled=filled)
    return replace(story, last=entry.n, hold=entry)


def restore_inbox(entries: Iterable[Entry], last: int) -> InboxStory:
    """The story of a compacted log, whose entries were looked at when they were all there.

    :param last: number of the last one that was compacted.
    """
    return replace(reduce(_apply, entries, InboxStory()), last=last)


def is_entry_needed(story: InboxStory, entry: Entry) -> bool:
    """Whether the story refers to an entry that it was made of."""
    is_filled = isinstance(entry, Routed) and bool(entry.files) and entry.n > story.cleared_upto
    return is_filled or entry in (story.routed, story.hold, story.cleared)
