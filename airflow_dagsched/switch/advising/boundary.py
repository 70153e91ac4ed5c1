"""Where a new graph begins to read, from which window on it has all rows, and where the old one ends.

::

    rows read by the old graph ──────────────┤ newest
    windows       ... ──┤──────┤──────┤──────┼──────┤──────┤
                                      └ old ─┘ end = rows_from: every row from here on is behind the offsets
                                               boundary: the windows behind it begin at ``rows_from`` or later

A window behind the boundary is complete in the new graph, one up to the fence in the old one; the fence is at or behind
the boundary, and behind all that *either* has emitted: what the new one emitted before it owned anything was dropped.
It is an end of windows of both: inside a window of either, that one's rows would be the other's too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.record_rules import find_least
from airflow_dagsched.switch.records import Batch, Epoch
from airflow_dagsched.switch.story import EpochStory, QueryStory, find_read_end
from airflow_dagsched.switch.windows import find_end, is_multiple, round_down, round_up

Reads = Mapping[str, tuple[str, ...]]
"""Query -> sources that it reads."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Where a new graph begins; the fields are those of its record."""

    start: Mapping[str, Any] | None = None
    boundary: float | None = None
    rows_from: float | None = None
    read: Mapping[str, int] = field(default_factory=dict)
    """See ``Epoch.x_read``."""


@dataclass(frozen=True, slots=True)
class Upto:
    """Where the old graph's windows end: of each query, where that is another than of all."""

    window: float
    by_query: Mapping[str, float]


def choose_begin(old: EpochStory, reads: Reads, window: float, reach: float) -> Begin | Reason:
    """Where a graph begins that runs beside the old one: at its last batches. A reason to wait, if that is not known.

    :param reads: of the new graph.
    :param window: length of the flow's windows in seconds.
    :param reach: see ``Epoch.x_reach``, of the new graph.
    """
    unknown = [name for name, query in sorted(old.queries.items()) if find_read_end(query.last, window) is None]
    if unknown:
        return Reason("newest row unknown", old.record.epoch, names=tuple(unknown))
    rows_from = find_rows_from(old, window)
    boundary = round_up(rows_from + reach, window) if rows_from else None
    lasts = {name: query.last for name, query in old.queries.items()}
    offsets = {key: _find_offset(old, lasts, *key, rows_from) for key in _list_pairs(reads)}
    read = {name: last.x_read for name, last in lasts.items() if name in reads}
    return Begin(name_offsets(offsets), boundary, rows_from or None, read)


def find_rows_from(old: EpochStory, window: float) -> float:
    """Every row of this event time or later is behind the last batches of the old graph; 0: all rows are."""
    ends = [find_read_end(query.last, window) or 0.0 for query in old.queries.values()]
    # What was read before the old graph began is of earlier times than it began to take rows of.
    return max(*ends, old.record.x_rows_from or 0.0, 0.0)


def find_newest(old: EpochStory) -> tuple[str, float] | None:
    """The source with the newest row that the old graph has read, and the row's event time; None: it has read none."""
    found = [
        (moment, source)
        for query in old.queries.values()
        for source, moment in query.last.x_newest.items()
        if moment is not None
    ]
    return max(found)[::-1] if found else None


def choose_cold_begin(old: EpochStory, reads: Reads, window: float, reach: float) -> Begin:
    """Where a graph begins that takes over from one that can run no more: as near to its end as all rows are had."""
    upto = choose_cold_upto(old)
    ends = {query: upto.by_query.get(query, upto.window) for query in reads}
    # The window behind the end may begin before it: not all windows are as long as the flow's, or as they were.
    needed = {query: max(round_down(end, window) - reach, 0.0) for query, end in ends.items()}
    offsets = {
        (query, source): _find_offset(old, _find_closed(old, needed[query]), query, source, needed[query])
        for query, source in _list_pairs(reads)
    }
    return Begin(name_offsets(offsets), min(ends.values(), default=upto.window), min(needed.values(), default=0.0))


def choose_upto(old: EpochStory, new: EpochStory) -> Upto:
    """Where the old graph's windows end, if that is settled now."""
    if new.record.x_overlap == "cold":
        return choose_cold_upto(old)
    if new.record.channel == "carry":
        return _make_upto(old, _find_carried_end)
    queries = {*old.queries, *new.queries, ""}
    return Upto(_round_up_for_both(old, new, max(find_least(old, new, query) for query in queries)), {})


def _round_up_for_both(old: EpochStory, new: EpochStory, moment: float) -> float:
    """The first moment from this one on at which windows of both graphs end: the longer ones' ends are such."""
    return round_up(moment, max(old.record.x_window, new.record.x_window))


def find_unlike_windows(old: EpochStory, window: float, goes_on: bool) -> Reason | None:
    """Why no fence can be an end of windows of both graphs.

    :param window: length of the new graph's in seconds.
    :param goes_on: whether the old graph still emits, so that it may end later than it is.
    """
    before = old.record.x_window
    if is_multiple(before, window) or (goes_on and is_multiple(window, before)):
        return None
    return Reason("unlike windows" if goes_on else "longer windows", old.record.epoch, seconds=before)


def choose_inbox_upto(old: EpochStory, new: EpochStory, newest: float | None) -> Upto:
    """Where the old graph's windows end, once nothing is routed to it that is not in the inbox.

    :param newest: newest event time of all rows that were routed; None: none was.
    """
    least = choose_upto(old, new).window
    routed = 0.0 if newest is None else find_end(newest, new.record.x_window)
    return Upto(_round_up_for_both(old, new, max(least, routed)), {})


def choose_cold_upto(old: EpochStory) -> Upto:
    """Each query's windows end where its watermark was: it has emitted those before, and can emit no other."""
    return _make_upto(old, _find_cold_end)


def list_open(epoch: EpochStory) -> tuple[str, ...]:
    """Queries that have emitted rows of windows which may get more: nobody would own those."""
    return tuple(
        name
        for name, query in sorted(epoch.queries.items())
        if query.newest_window is not None and query.newest_window > query.last.watermark
    )


def find_watermark(epoch: EpochStory) -> float | None:
    """The lowest watermark of its queries; None: one has no batch yet."""
    names = {*epoch.record.x_queries, *epoch.queries}
    if not names or any(name not in epoch.queries for name in names):
        return None
    return min(query.last.watermark for query in epoch.queries.values())


def find_changed_sources(old: EpochStory, sources: Mapping[str, str]) -> tuple[str, ...]:
    """Sources that the old graph reads otherwise.

    :param sources: see ``Epoch.x_sources``, of the new graph.
    """
    before = old.record.x_sources
    return tuple(name for name, digest in sorted(sources.items()) if before.get(name, digest) != digest)


def put_named(begin: Begin, named: Mapping[str, Any], old: EpochStory, changed: Collection[str]) -> Begin:
    """``begin`` with the offsets that the author names, of sources that changed or that were named otherwise before.

    One that is left in the file as it was names no place to go back to at each switch.
    """
    before = old.record.x_named
    news = {name: offset for name, offset in named.items() if name in changed or before.get(name) != offset}
    kept = {key: each for key, each in (begin.start or {}).items() if key.rpartition("/")[2] not in news}
    return replace(begin, start={**kept, **news} or None, read={} if news else begin.read)


def name_offsets(offsets: Mapping[tuple[str, str], Any]) -> dict[str, Any] | None:
    """(query, source) -> offset, as records have them: by source, where one query alone reads it."""
    readers = [source for _, source in offsets]
    named = {
        f"{query}/{source}" if readers.count(source) > 1 else source: offset
        for (query, source), offset in sorted(offsets.items())
    }
    return named or None


def _make_upto(old: EpochStory, find_end_of: Callable[[EpochStory, str], float]) -> Upto:
    """Of a graph that emits nothing more: its queries end where they are, and one may be behind another."""
    ends = {name: find_end_of(old, name) for name in sorted({*old.record.x_queries, *old.queries})}
    upto = max(ends.values(), default=0.0)
    return Upto(upto, {name: end for name, end in ends.items() if end != upto})


def _find_cold_end(old: EpochStory, name: str) -> float:
    query = old.queries.get(name)
    before = find_least(old, old, name)
    return before if query is None else max(before, round_down(query.last.watermark, old.record.x_window))


def _find_carried_end(old: EpochStory, name: str) -> float:
    """The newest window of which the query has emitted rows: all others are in the state that is handed on."""
    query = old.queries.get(name)
    if query is None or query.newest_window is None:
        return _find_cold_end(old, name)
    return find_least(old, old, name)


def _list_pairs(reads: Reads) -> Iterator[tuple[str, str]]:
    return ((query, source) for query, sources in reads.items() for source in sources)


def _find_closed(old: EpochStory, end: float) -> dict[str, Batch]:
    """Query -> its last batch before which no row of this event time or later was read."""
    found = {name: _find_last_before(query, old.record, end) for name, query in old.queries.items()}
    return {name: batch for name, batch in found.items() if batch is not None}


def _find_last_before(query: QueryStory, record: Epoch, end: float) -> Batch | None:
    fitting = [each for each in query.candidates if (find_read_end(each, record.x_window) or 0.0) <= end]
    return max(fitting, key=lambda each: each.batch, default=None)


def _find_offset(old: EpochStory, batches: Mapping[str, Batch], query: str, source: str, rows_from: float) -> Any:
    """Where the query begins to read the source: where the same one of the old graph does in its batch, else another,
    else where the old graph began. None: from the beginning, as the source is declared.

    :param batches: of the old graph, by query: no row of this time or later lies before them.
    """
    readers = [each for _, each in sorted(batches.items()) if source in each.x_begin]
    mine = [each for each in readers if each.query == query]
    # One of the old graph's that has no batch yet has read nothing, whatever others have.
    if mine or (readers and query not in {*old.record.x_queries, *old.queries}):
        return min(mine or readers, key=lambda each: _get_newest(each, source)).x_begin[source]
    start = old.record.start or {}
    is_early = (old.record.x_rows_from or 0.0) <= rows_from
    return start.get(f"{query}/{source}", start.get(source)) if is_early else None


def _get_newest(batch: Batch, source: str) -> float:
    newest = batch.x_newest.get(source)
    return float("-inf") if newest is None else newest
