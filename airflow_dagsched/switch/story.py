"""What the records of a log come to: the epochs, what became of each, and how far its queries are.

A story holds no more than what somebody may still have to know, so its size depends on neither rows nor months; what it
refers to is what a compacted log keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from airflow_dagsched.switch.records import (
    Aborted,
    Batch,
    Current,
    Drained,
    Epoch,
    Fence,
    Record,
    Started,
    Stopped,
)
from airflow_dagsched.switch.windows import find_end, find_latest, round_down

KEPT_EPOCHS = 10
"""So many epochs before the owner are remembered."""


@dataclass(frozen=True, slots=True)
class QueryStory:
    """How far one query of an epoch is."""

    last: Batch
    greatest: Batch | None = None
    """The one with the newest window of all."""
    past: tuple[Batch, ...] = ()
    """Batches that began behind the fence out of the epoch."""
    candidates: tuple[Batch, ...] = ()
    """By what was read before them: batches at which a graph may begin that takes over where this one can't go on."""

    @property
    def newest_window(self) -> float | None:
        """The newest window of which the query has emitted rows; None: it has emitted nothing."""
        return self.greatest.last if self.greatest else None

    @property
    def batches_past(self) -> int:
        """How many batches began behind the fence."""
        return len(self.past)


@dataclass(frozen=True, slots=True)
class EpochStory:
    """What became of an epoch."""

    record: Epoch
    begun: Started | None = None
    """The first start."""
    started: Started | None = None
    """The last start."""
    into: Fence | None = None
    out: Fence | None = None
    drained: bool = False
    current: bool = False
    stopped: Stopped | None = None
    """None: it was not stopped, or has been started since."""
    aborted: Aborted | None = None
    queries: Mapping[str, QueryStory] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def newest_window(self) -> float | None:
        """The newest window of which any query has emitted rows."""
        return find_latest(each.newest_window for each in self.queries.values())

    @property
    def without_batch(self) -> tuple[str, ...]:
        """Its queries that have no batch yet."""
        return tuple(sorted({*self.record.x_queries} - {*self.queries}))

    @property
    def upto(self) -> float | None:
        """The window of the fence out of it."""
        return self.out.upto if self.out else None

    @property
    def comes_after(self) -> bool:
        """Whether its queries start only once the graph before it is gone."""
        return self.record.x_overlap == "sequential" or self.record.channel == "carry"

    @property
    def has_ended(self) -> bool:
        """Whether no record of it may come any more but that it is stopped."""
        return self.aborted is not None or (self.drained and self.stopped is not None)


@dataclass(frozen=True, slots=True)
class Story:
    """All that a log says."""

    last: int = 0
    """Number of the newest record."""
    epochs: Mapping[int, EpochStory] = field(default_factory=lambda: MappingProxyType({}))
    owner: int | None = None
    """The newest epoch that is current."""
    successor: int | None = None
    """The epoch that is to be the next owner: the newest one, if it is neither aborted nor current."""

    @property
    def old(self) -> EpochStory | None:
        """The owner."""
        return None if self.owner is None else self.epochs[self.owner]

    @property
    def new(self) -> EpochStory | None:
        """The successor."""
        return None if self.successor is None else self.epochs[self.successor]

    @property
    def reads_inbox(self) -> bool:
        """Whether a graph that runs, or is to run, has its rows from the inbox."""
        living = (each for each in self.epochs.values() if not each.has_ended and each.stopped is None)
        return any(each.record.channel == "inbox" for each in living)

    @property
    def wants_standby(self) -> bool:
        """Whether a graph that runs, or is to run, is to have an application that waits."""
        living = (each for each in self.epochs.values() if not each.has_ended and each.stopped is None)
        return any(each.record.x_standbys for each in living)

    @property
    def newest(self) -> EpochStory | None:
        """The epoch that was asked for last, whatever became of it."""
        return self.epochs[max(self.epochs)] if self.epochs else None


def owned(story: Story, epoch: int, query: str) -> tuple[float | None, float | None]:
    """The windows behind the first of the two, up to the second, which are the epoch's as things stand.

    None: from the beginning; without an end so far. Raises ``LookupError`` if it owns nothing.
    """
    found = story.epochs[epoch]
    if found.aborted is not None or (found.into is None and found.record.x_after != 0):
        raise LookupError(epoch)
    return _get_upto(found.into, query), _get_upto(found.out, query)


def awaits_state(story: Story, epoch: int) -> bool:
    """Whether the epoch is to begin with the state of a graph that has not come to its end.

    :param epoch: or what the log has none of: what fills inboxes, which runs as one.
    """
    new = story.epochs.get(epoch)
    old = story.epochs.get(new.record.x_after) if new is not None else None
    return new is not None and new.record.channel == "carry" and old is not None and not old.drained


def apply_record(story: Story, record: Record) -> Story:
    """The story with one more record, whether that may come now or not: see ``fold``."""
    if isinstance(record, Epoch):
        # A log of another writer need not say so.
        follows = replace(record, x_after=record.x_after or story.owner or 0)
        epochs = {**story.epochs, record.epoch: EpochStory(follows)}
        return Story(record.n, MappingProxyType(epochs), story.owner, record.epoch)
    epochs = {**story.epochs, **{each.record.epoch: each for each in _change_epochs(story, record)}}
    moved = replace(story, last=record.n, epochs=MappingProxyType(epochs))
    if isinstance(record, Current):
        return forget_epochs(replace(moved, owner=record.epoch, successor=None))
    if isinstance(record, Aborted):
        return forget_epochs(replace(moved, successor=None))
    return moved


def forget_epochs(story: Story) -> Story:
    """Without what is too long ago for anybody to need: long before the owner, or long aborted."""
    newest, first = max(story.epochs, default=0), (story.owner or 0) - KEPT_EPOCHS
    kept = {
        number: each
        for number, each in story.epochs.items()
        if number >= first and (each.aborted is None or number > newest - KEPT_EPOCHS)
    }
    return replace(story, epochs=MappingProxyType(kept))


def is_needed(story: Story, record: Record) -> bool:
    """Whether the story refers to the record, one of those it was made of: without the others it would be the same."""
    if isinstance(record, Fence):
        return record.from_ in story.epochs or record.to in story.epochs
    epoch = story.epochs.get(record.epoch)
    if epoch is None:
        return False
    match record:
        case Started():
            return record in (epoch.begun, epoch.started)
        case Stopped():
            return epoch.stopped == record
        case Batch():
            return _is_needed_batch(epoch.queries[record.query], record)
    return True


def _is_needed_batch(query: QueryStory, batch: Batch) -> bool:
    return batch in (query.last, query.greatest, *query.past, *query.candidates)


def _change_epochs(story: Story, record: Record) -> Iterator[EpochStory]:
    """The epochs that the record says something of. One that was forgotten is not there."""
    if isinstance(record, Fence):
        if record.from_ in story.epochs:
            yield replace(story.epochs[record.from_], out=record)
        if record.to in story.epochs:
            yield replace(story.epochs[record.to], into=record)
    elif not isinstance(record, Epoch) and record.epoch in story.epochs:
        yield _change_epoch(story.epochs[record.epoch], record)


def _change_epoch(epoch: EpochStory, record: Record) -> EpochStory:
    match record:
        case Started():
            return replace(epoch, begun=epoch.begun or record, started=record, stopped=None)
        case Batch():
            return replace(epoch, queries=MappingProxyType(_add_batch(epoch, record)))
        case Drained():
            return replace(epoch, drained=True)
        case Current():
            return replace(epoch, current=True)
        case Stopped():
            return replace(epoch, stopped=record)
        case Aborted():
            return replace(epoch, aborted=record)
    raise TypeError(record)


def _add_batch(epoch: EpochStory, batch: Batch) -> dict[str, QueryStory]:
    before = epoch.queries.get(batch.query) or QueryStory(batch)
    is_past = epoch.out is not None and batch.watermark >= epoch.out.upto and not epoch.drained
    return {
        **epoch.queries,
        batch.query: QueryStory(
            last=batch,
            greatest=_choose_greatest(before.greatest, batch),
            past=(*before.past, batch) if is_past else before.past,
            candidates=_add_candidate(before.candidates, batch, epoch.record),
        ),
    }


def _choose_greatest(before: Batch | None, batch: Batch) -> Batch | None:
    if batch.last is None or (before is not None and (before.last or 0.0) >= batch.last):
        return before
    return batch


def find_read_end(batch: Batch, window: float) -> float | None:
    """The end of the newest window, of the flow's length, of which a row was read before the batch.

    0 where no row was; None where that is not known.
    """
    newest = [batch.x_newest.get(source) for source in batch.x_begin if source in batch.x_newest]
    # A source of which nothing is said may have had rows of any window.
    if not batch.x_begin or len(newest) < len(batch.x_begin) or window <= 0:
        return None
    return max((find_end(each, window) for each in newest if each is not None), default=0.0)


def _add_candidate(before: tuple[Batch, ...], batch: Batch, record: Epoch) -> tuple[Batch, ...]:
    """One batch for each window that was the newest read, the last of them; none that a later one stands for.

    A graph that takes over owns windows behind the last one that this query can have emitted, and begins at the last
    batch before which no row of those was read. As the watermark grows, so does that batch's number.
    """
    last_of_each = {find_read_end(each, record.x_window): each for each in (*before, batch)}
    ends = sorted(end for end in last_of_each if end is not None)
    if not ends:
        return before
    emitted = round_down(batch.watermark, record.x_window)
    closed = max((end for end in ends if end + record.x_reach <= emitted), default=0.0)
    return tuple(last_of_each[end] for end in ends if end >= closed)


def _get_upto(fence: Fence | None, query: str) -> float | None:
    return None if fence is None else fence.x_upto.get(query, fence.upto)
