"""Which record may come in which state, and what the state is then: a table, every pair in it.

``ROWS`` is read as it is written: "." means that the record may come and the state stays, "-" that it may not come, and
a name is the state after it. Of a record that may come a guard tells what else must hold; it names what does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from airflow_dagsched.switch.judgement import judge_batch
from airflow_dagsched.switch.records import Aborted, Batch, Current, Drained, Epoch, Fence, Record, Started, Stopped
from airflow_dagsched.switch.state import STATES, State
from airflow_dagsched.switch.story import EpochStory, QueryStory, Story
from airflow_dagsched.switch.windows import is_multiple

RecordKind = Literal[
    "epoch",
    "started old",
    "started new",
    "batch old",
    "batch new",
    "fence",
    "drained old",
    "stopped old",
    "stopped new",
    "current new",
    "aborted new",
    "other",
]
"""What a record says, and of whom: the owner is old, its successor new. Of others nothing may be said."""
RECORD_KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
Guard = Callable[[Story, Any], str]
"""What keeps the record from coming now; empty: nothing does."""


@dataclass(frozen=True, slots=True)
class RecordRule:
    """Of one kind of record in one state."""

    to: tuple[State, ...]
    """States that the flow may be in after it; none: it may not come."""
    guard: Guard


ROWS = """
              steady     requested    deploying    catching_up  fenced    retiring  aborted
epoch         requested  -            -            -            -         -         requested
started old   .          .            .            .            .         -         .
started new   -          catching_up  catching_up  .            .         .         -
batch old     .          .            .            .            .         .         .
batch new     -          -            -            ./retiring   .         .         -
fence         -          fenced       fenced       fenced       -         -         -
drained old   -          -            -            -            retiring  -         -
stopped old   .          .            .            .            .         .         .
stopped new   -          -            -            .            .         .         -
current new   -          -            -            -            -         steady    -
aborted new   -          steady       steady       steady       -         -         -
other         -          -            -            -            -         -         -
"""
"""States that follow from the log alone: after "aborted" the state is "aborted" while the driver lives."""


def name_record(story: Story, record: Record) -> RecordKind:
    """What the record says, and of whom."""
    match record:
        case Epoch():
            return "epoch"
        case Fence():
            is_switch = story.owner is not None and (record.from_, record.to) == (story.owner, story.successor)
            return "fence" if is_switch else "other"
        case Drained():
            return "drained old" if record.epoch == story.owner else "other"
        case Current() | Aborted():
            words: RecordKind = "current new" if isinstance(record, Current) else "aborted new"
            return words if record.epoch == story.successor else "other"
    return _name_of_both(story, record)


def _name_of_both(story: Story, record: Started | Batch | Stopped) -> RecordKind:
    """Of a record that either graph may write."""
    names: Mapping[type, tuple[RecordKind, RecordKind]] = {
        Started: ("started old", "started new"),
        Batch: ("batch old", "batch new"),
        Stopped: ("stopped old", "stopped new"),
    }
    old, new = names[type(record)]
    if record.epoch == story.owner:
        return old
    return new if record.epoch == story.successor else "other"


def _allow(story: Story, record: Record) -> str:
    return ""


def _guard_epoch(story: Story, record: Epoch) -> str:
    newest = story.newest
    if record.epoch != (newest.record.epoch if newest else 0) + 1:
        return "epochs are numbered one by one"
    return "" if record.x_after in (0, story.owner) else "it must follow the owner"


def _guard_batch(story: Story, record: Batch) -> str:
    has_rows = record.rows > 0
    if (record.first is not None, record.last is not None) != (has_rows, has_rows):
        return "rows have windows, and windows rows"
    judged = judge_batch(story, record.epoch, record.query, record.batch, record.first, record.last)
    if judged.kind in ("repeated", "refused"):
        return judged.reason or "this batch is recorded already"
    least = record.rows if judged.kind == "all" else 0
    most = 0 if judged.kind == "none" else record.rows
    if not least <= record.kept <= most:
        return "what is kept is not what the epoch owns"
    return "files of no rows" if record.files and judged.kind == "none" else ""


def _guard_fence(story: Story, record: Fence) -> str:
    old, new = story.epochs[record.from_], story.epochs[record.to]
    is_early = new.started is None and new.record.x_overlap == "beside" and new.record.channel != "carry"
    if is_early:
        return "the new graph must run before it is handed any window"
    queries = {*old.queries, *new.queries, *record.x_upto}
    short = [name for name in sorted(queries) if record.x_upto.get(name, record.upto) < find_least(old, new, name)]
    return f"windows of {', '.join(short)} are behind it already" if short else _guard_ends(old, new, record)


def _guard_ends(old: EpochStory, new: EpochStory, record: Fence) -> str:
    """No window of either graph may be on both sides."""
    bounds = {record.upto, *record.x_upto.values()}
    windows = {old.record.x_window, new.record.x_window}
    if not all(is_multiple(bound, window) for bound in bounds for window in windows):
        return "it is inside a window"
    return _guard_rest(old, new, record)


def _guard_rest(old: EpochStory, new: EpochStory, record: Fence) -> str:
    """Of queries that have no batch, or will have none before the new graph's."""
    return "" if record.upto >= find_least(old, new, "") else "windows that are not the new graph's are behind it"


def find_least(old: EpochStory, new: EpochStory, query: str) -> float:
    """The first window at which a fence between the two may be, as far as it is the query's."""
    emitted = [each.queries[query].newest_window for each in (old, new) if query in each.queries]
    before = old.into.x_upto.get(query, old.into.upto) if old.into else None
    return max((each for each in (*emitted, before, new.record.boundary) if each is not None), default=0.0)


def _guard_drained(story: Story, record: Drained) -> str:
    old, new = story.epochs[record.epoch], story.new
    if new is None or old.out is None:
        return "there is no fence"
    if new.record.x_overlap == "cold":
        return "" if old.stopped else "it still runs"
    if new.record.channel == "carry":
        return ""
    return "" if has_passed(old) else "not all of its queries are behind the fence"


def has_passed(old: EpochStory) -> bool:
    """Whether each of its queries has as many batches behind the fence as it takes to emit all windows before it."""
    names = {*old.record.x_queries, *old.queries}
    return bool(names) and all(_count_past(old.queries.get(name)) >= old.record.x_drain for name in names)


def _count_past(query: QueryStory | None) -> int:
    return query.batches_past if query else 0


def _guard_stopped(story: Story, record: Stopped) -> str:
    return "it is stopped already" if story.epochs[record.epoch].stopped else ""


def _guard_current(story: Story, record: Current) -> str:
    old = story.old
    return "" if old is None or old.stopped else "the old graph is not stopped"


GUARDS: Mapping[RecordKind, Guard] = {
    "epoch": _guard_epoch,
    "batch old": _guard_batch,
    "batch new": _guard_batch,
    "fence": _guard_fence,
    "drained old": _guard_drained,
    "stopped old": _guard_stopped,
    "stopped new": _guard_stopped,
    "current new": _guard_current,
}


def read_rows(text: str) -> dict[tuple[State, RecordKind], RecordRule]:
    """The table that ``text`` shows."""
    header, *lines = text.strip().splitlines()
    states = header.split()
    table: dict[tuple[State, RecordKind], RecordRule] = {}
    for line in lines:
        words = line.split()
        kind = next(each for each in RECORD_KINDS if each.split() == words[: -len(states)])
        for state in STATES:
            cell = words[states.index(state) - len(states)]
            table[state, kind] = RecordRule(_read_cell(state, cell), GUARDS.get(kind, _allow))
    return table


def _read_cell(state: State, cell: str) -> tuple[State, ...]:
    if cell == "-":
        return ()
    return tuple(state if word == "." else STATES[STATES.index(word)] for word in cell.split("/"))


RECORDS = read_rows(ROWS)
