"""Which graph a row is for, and the entry that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_dagsched.switch.inbox.entries import Held, Routed, RoutedRows
from airflow_dagsched.switch.inbox.inbox_story import InboxStory
from airflow_dagsched.switch.records import Fence
from airflow_dagsched.switch.state import is_first
from airflow_dagsched.switch.story import EpochStory, Story
from airflow_dagsched.switch.windows import find_latest, round_down


@dataclass(frozen=True, slots=True)
class Route:
    """By a row's event time, in seconds since 1970. All its times are ends of windows."""

    last: int
    """The epoch that has all rows but those below."""
    before: tuple[float, int] | None = None
    """Rows before this time are this epoch's."""
    dead_before: float = 0.0
    """Rows before this time are nobody's: who had them has emitted their windows."""


def make_route(story: Story, inbox: InboxStory) -> Route | None:
    """The rule for the next entry; None: it is not known yet, so rows wait.

    :param story: of the flow; if it is an old one, an entry by its rule gets no number behind a hold.
    """
    taker = _find_taker(story)
    if taker is None or taker.record.channel != "inbox" or _awaits_fence(story, inbox.hold):
        return None
    number, old = taker.record.epoch, story.old
    if old is None or taker is old or not _is_routed_to(old, taker):
        return Route(number, dead_before=_find_bound(taker.into))
    return Route(number, (_find_bound(taker.into), old.record.epoch), _find_bound(old.into))


def _find_taker(story: Story) -> EpochStory | None:
    """The epoch that has the newest windows: the successor once it has a fence, or where it follows nobody."""
    new = story.new
    return new if new is not None and (new.into is not None or is_first(new)) else story.old


def _awaits_fence(story: Story, hold: Held | None) -> bool:
    """Whether the hold's switch is neither behind its fence nor given up, as far as the story goes."""
    if hold is None:
        return False
    held = story.epochs.get(hold.epoch)
    # Of two that are not there one is long forgotten, the other was asked for behind what was read.
    return hold.epoch > max(story.epochs, default=0) if held is None else held.into is None and held.aborted is None


def _is_routed_to(old: EpochStory, new: EpochStory) -> bool:
    """Whether the old graph still takes rows before its fence. Where it runs no more the new one has what is open."""
    return old.record.channel == "inbox" and not old.drained and new.record.x_overlap != "cold"


def _find_bound(fence: Fence | None) -> float:
    """Before it no query of the graph behind the fence has a window."""
    return min((fence.upto, *fence.x_upto.values())) if fence else 0.0


def find_late_before(inboxes: Iterable[InboxStory], lateness: float, windows: Iterable[float]) -> float:
    """Rows before this time are too late for every graph; 0: none is.

    :param inboxes: of all sources: of several a graph's watermark is the least.
    :param lateness: by which rows may come after later ones, in seconds.
    :param windows: lengths of those of all graphs that take rows, in seconds.
    """
    newest = [each.newest for each in inboxes]
    known = [each for each in newest if each is not None]
    if not known or len(known) < len(newest):
        return 0.0
    return max(round_down(min(known) - lateness, max(windows)), 0.0)


def make_entry(inbox: InboxStory, batch: RoutedRows, n: int, at: float) -> Routed | None:
    """The entry of a batch; None: it has one."""
    if batch.batch <= inbox.batch:
        return None
    newest = find_latest((inbox.newest, batch.newest))
    dead = _add_counts(inbox.dead, batch.dead)
    return Routed(
        n=n, at=at, batch=batch.batch, newest=newest, rows=batch.rows, dead=dead, files=batch.files, tag=batch.tag
    )


def _add_counts(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in sorted({*one, *other})}
