"""Where a new graph begins: it must find every row of every window that is its own.

The oracle has the rows themselves: sources are lists of event times, queries read on in them batch by batch, and emit a
window once the watermark has passed its end.

::

    source "a"    3  14  9  21  17  33          batches of query "q":  |3 14| |9 21| ...
    source "b"    5   8  30                     newest of "a" before the second batch: 14
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.switch.advising.boundary import (
    Begin,
    choose_begin,
    choose_cold_begin,
    choose_cold_upto,
    choose_inbox_upto,
    choose_upto,
    find_rows_from,
    list_open,
    name_offsets,
    put_named,
)
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.story import EpochStory
from airflow_dagsched.switch.windows import find_end, round_down, round_up
from tests.switch.drawn import (
    FIRST,
    WINDOW,
    go_on,
    make_batch,
    make_current,
    make_drained,
    make_epoch,
    make_fence,
    make_started,
    make_stopped,
    tell,
)

LATENESS = 5.0
Rows = Mapping[str, list[float]]
SHAPES = [(10.0, 10.0), (5.0, 5.0), (20.0, 10.0), (30.0, 10.0), (20.0, 5.0)]
"""Length and slide of a graph's windows."""


@dataclass
class Reader:
    """A query of the old graph: how far it is in each source."""

    name: str
    offsets: dict[str, int]
    rows_from: float = 0.0
    watermark: float = 0.0
    emitted: float = 0.0
    batches: int = 0

    def read(self, rows: Rows, count: int) -> Record:
        """Its next batch, of so many rows of each source."""
        before = {name: self.find_newest(rows[name][: self.offsets[name]]) for name in self.offsets}
        known = [each for each in before.values() if each is not None]
        if len(known) == len(before):
            self.watermark = max(self.watermark, min(known) - LATENESS)
        ends = {find_end(row, WINDOW) for name in self.offsets for row in rows[name][: self.offsets[name]]}
        due = sorted(end for end in ends if self.emitted < end <= self.watermark)
        self.emitted = max([self.emitted, *due])
        first, last = (due[0], due[-1]) if due else (None, None)
        record = make_batch(
            1, self.batches, first, last, query=self.name, watermark=self.watermark,
            x_begin=dict(self.offsets), x_newest=before,
        )  # fmt: skip
        self.offsets = {name: min(at + count, len(rows[name])) for name, at in self.offsets.items()}
        self.batches += 1
        return record

    def find_newest(self, rows: list[float]) -> float | None:
        return max((row for row in rows if row >= self.rows_from), default=None)


moments = st.integers(0, 60).map(float)
sources = st.fixed_dictionaries({name: st.lists(moments, min_size=4, max_size=12) for name in "ab"})
READS = {"q": ("a",), "r": ("a", "b")}


@st.composite
def runs(draw: st.DrawFn) -> tuple[Rows, EpochStory]:
    """Rows, and an owner whose queries have read some of them, each at its own pace."""
    rows = draw(sources)
    readers = [Reader(name, dict.fromkeys(READS[name], 0)) for name in sorted(READS)]
    records: list[Record] = [make_epoch(1, x_queries=tuple(READS)), make_started(1)]
    records += [reader.read(rows, draw(st.integers(0, 3))) for reader in readers]
    records.append(make_current(1))
    for reader in draw(st.lists(st.sampled_from(readers), max_size=8)):
        records.append(reader.read(rows, draw(st.integers(0, 4))))
    old = tell(*records).old
    assert old is not None
    return rows, old


def find_offset(begin: Begin, query: str, source: str) -> int:
    start = begin.start or {}
    return start.get(f"{query}/{source}", start.get(source)) or 0


def list_missed(rows: Rows, begin: Begin, after: Mapping[str, float], shape: tuple[float, float]) -> list[object]:
    """Rows of windows behind ``after`` that the new graph, which has windows of this shape, does not get."""
    length, slide = shape
    missed: list[object] = []
    for query, source in [("q", "a"), ("r", "a"), ("r", "b"), ("new", "b")]:
        for at, row in enumerate(rows[source]):
            latest = round_down(row, slide) + length
            is_read = at >= find_offset(begin, query, source) and row >= (begin.rows_from or 0.0)
            if latest > after[query] and not is_read:
                # A window that ends behind the fence, and has the row.
                ends = [latest - slide * each for each in range(int(length / slide)) if latest - slide * each > row]
                missed += [(query, source, at, row, end) for end in ends if end > after[query]]
    return missed


NEW_READS = {**READS, "new": ("b",)}


@given(runs(), st.sampled_from(SHAPES))
def test_beside_the_old_one_a_graph_has_all_rows_behind_the_boundary(run: tuple[Rows, EpochStory], shape):
    rows, old = run
    length, slide = shape
    begin = choose_begin(old, NEW_READS, WINDOW, length - slide)
    assert isinstance(begin, Begin)
    assert list_missed(rows, begin, dict.fromkeys(NEW_READS, begin.boundary or 0.0), shape) == []


@given(runs(), st.sampled_from(SHAPES))
def test_the_boundary_is_as_early_as_it_can_be(run: tuple[Rows, EpochStory], shape):
    """The newest row that was read is of a window before it, or one window before where windows overlap."""
    rows, old = run
    length, slide = shape
    begin = choose_begin(old, NEW_READS, WINDOW, length - slide)
    assert isinstance(begin, Begin)
    read = [row for query in old.queries.values() for name, at in query.last.x_begin.items() for row in rows[name][:at]]
    assert begin.rows_from == (find_end(max(read), WINDOW) if read else None)
    if read:
        assert begin.boundary == round_up(find_end(max(read), WINDOW) + length - slide, WINDOW)


@given(runs(), st.sampled_from(SHAPES))
def test_after_one_that_can_run_no_more_a_graph_has_all_rows_that_are_its_own(run: tuple[Rows, EpochStory], shape):
    rows, old = run
    length, slide = shape
    begin = choose_cold_begin(old, NEW_READS, WINDOW, length - slide)
    upto = choose_cold_upto(old)
    after = {query: upto.by_query.get(query, upto.window) for query in NEW_READS}
    assert list_missed(rows, begin, after, shape) == []
    for name, query in old.queries.items():
        # What the old one has emitted is its own, and what it can have emitted is before its watermark.
        assert (query.newest_window or 0.0) <= after[name] <= max(query.last.watermark, query.newest_window or 0.0)


@given(runs())
def test_a_second_graph_that_reads_nothing_new_leaves_a_third_all_rows(run: tuple[Rows, EpochStory]):
    """Where an epoch fails before its first batch, the next one begins where it did."""
    rows, old = run
    first = choose_cold_begin(old, READS, WINDOW, 0.0)
    upto = choose_cold_upto(old)
    dead = EpochStory(
        make_epoch(2, start=first.start, boundary=first.boundary, x_rows_from=first.rows_from, x_queries=tuple(READS)),
        into=make_fence(1, upto.window, x_upto=upto.by_query),
    )
    second = choose_cold_begin(dead, NEW_READS, WINDOW, 0.0)
    again = choose_cold_upto(dead)
    after = {query: again.by_query.get(query, again.window) for query in NEW_READS}
    assert again == upto
    assert list_missed(rows, second, {**after, "new": 1e9}, SHAPES[0]) == []


@given(runs())
def test_where_more_rows_of_a_window_may_come_the_query_is_named(run: tuple[Rows, EpochStory]):
    _, old = run
    assert list_open(old) == ()


def test_a_query_that_emits_what_is_not_closed_is_named():
    assert list_open(tell(*FIRST, make_batch(1, 1, 10, 40, watermark=30)).epochs[1]) == ("out",)


# --- by hand


def make_old(*records: Record) -> EpochStory:
    old = tell(*FIRST, *records).old
    assert old is not None
    return old


def test_a_row_on_an_end_is_of_the_next_window():
    for newest, end in ((9.999999, 10), (10.0, 20), (10.000001, 20)):
        old = make_old(make_batch(1, 1, x_newest={"in": newest}))
        assert find_rows_from(old, WINDOW) == end


def test_ends_are_exact_where_seconds_are_not():
    assert find_end(1_763_900_000.3, 0.1) == 1_763_900_000.4
    assert round_down(0.3, 0.1) == 0.3
    assert round_up(0.30000000000000004, 0.1) == 0.3


def test_what_was_read_is_never_guessed():
    """A source that the batch began in, and says nothing of."""
    old = make_old(make_batch(1, 1, x_begin={"in": 1, "more": 2}, x_newest={"in": 5.0}))
    assert choose_begin(old, {"out": ("in",)}, WINDOW, 0.0) == Reason("newest row unknown", 1, names=("out",))


def test_a_graph_begins_where_the_same_query_of_the_old_one_does():
    old = make_old(make_batch(1, 1, x_begin={"in": {"logOffset": 7}}, x_newest={"in": 12.0}, x_read=70))
    begin = Begin({"in": {"logOffset": 7}}, 20.0, 20.0, {"out": 70})
    assert choose_begin(old, {"out": ("in",)}, WINDOW, 0.0) == begin
    assert put_named(begin, {"in": 3}, old, ()).read == {}, "that is another place"


def test_offsets_are_named_by_query_where_several_read_a_source():
    assert name_offsets({("q", "a"): 1, ("r", "a"): 2, ("r", "b"): 3}) == {"q/a": 1, "r/a": 2, "b": 3}
    assert name_offsets({}) is None


def test_where_nothing_was_read_all_rows_are_the_new_graphs():
    old = make_old()
    assert choose_begin(old, {"out": ("in",)}, WINDOW, 0.0) == Begin({"in": {"logOffset": 0}}, None, None, {"out": 0})


def test_the_fence_is_behind_the_boundary_and_all_that_either_has_emitted():
    story = tell(*FIRST, make_batch(1, 1, 10, 20), make_epoch(2, boundary=40.0), make_started(2))
    assert choose_upto(story.epochs[1], story.epochs[2]).window == 40
    for record, window in (
        (make_batch(1, 2, 20, 60), 60.0),
        (make_batch(2, 0, 40, 70, kept=0), 70.0),
        (make_batch(2, 0, 40, 50, kept=0, query="other"), 50.0),
    ):
        told = go_on(story, record)
        assert choose_upto(told.epochs[1], told.epochs[2]).window == window


def test_an_inboxs_fence_is_the_window_of_the_newest_row_in_it():
    story = tell(*FIRST, make_batch(1, 1, 10, 20), make_epoch(2, channel="inbox"), make_started(2))
    assert choose_inbox_upto(story.epochs[1], story.epochs[2], 34.0).window == 40
    assert choose_inbox_upto(story.epochs[1], story.epochs[2], None).window == 20


def test_where_state_is_handed_on_the_fence_is_what_was_emitted():
    story = tell(*FIRST, make_batch(1, 1, watermark=37.0), make_epoch(2, channel="carry"))
    assert choose_upto(story.epochs[1], story.epochs[2]).window == 30
    told = go_on(story, make_batch(1, 2, 10, 20, watermark=37.0))
    assert choose_upto(told.epochs[1], told.epochs[2]).window == 20


def test_a_query_that_is_behind_hands_on_what_it_has_not_emitted():
    first = (make_epoch(1, x_queries=("fast", "slow")), make_started(1), make_batch(1, 0, 10, 30, query="fast"))
    slow = make_batch(1, 0, 10, 20, query="slow", watermark=25.0)
    story = tell(*first, slow, make_current(1), make_epoch(2, channel="carry"))
    upto = choose_upto(story.epochs[1], story.epochs[2])
    assert (upto.window, dict(upto.by_query)) == (30.0, {"slow": 20.0})


def test_a_fence_is_never_before_the_last_one():
    story = tell(*FIRST, make_epoch(2), make_started(2), make_fence(1, 90), make_batch(1, 1, watermark=90))
    story = go_on(story, make_drained(1), make_stopped(1), make_current(2), make_epoch(3), make_started(3))
    assert choose_upto(story.epochs[2], story.epochs[3]).window == 90


def make_reading(batch: int, newest: float, watermark: float, **fields: object) -> Record:
    """A batch that begins where it says, with its number for an offset."""
    return make_batch(1, batch, x_begin={"in": batch}, x_newest={"in": newest}, watermark=watermark, **fields)


def test_after_one_that_can_run_no_more_a_graph_reads_as_little_again_as_it_can():
    """From the last batch before which no row was read of a window that is its own."""
    pace = [(1, 4.0, 0.0), (2, 9.0, 4.0), (3, 19.0, 9.0), (4, 19.5, 14.0), (5, 24.0, 14.5), (6, 33.0, 21.0)]
    old = make_old(*(make_reading(*each) for each in pace))
    assert choose_cold_begin(old, {"out": ("in",)}, WINDOW, 0.0) == Begin({"in": 4}, 20.0, 20.0)
    assert choose_cold_begin(old, {"out": ("in",)}, WINDOW, 10.0).rows_from == 10.0
    # So long ago nobody remembers what was read: from where the old graph began.
    assert choose_cold_begin(old, {"out": ("in",)}, WINDOW, 10.0).start == {"in": None}


def test_what_the_old_graph_never_read_is_read_from_the_beginning():
    """Where windows of the new graph reach further back than where the old one began."""
    fields = {"start": {"in": 70}, "x_rows_from": 20.0, "boundary": 20.0}
    old = EpochStory(make_epoch(2, **fields), into=make_fence(1, 20))
    assert choose_cold_begin(old, {"out": ("in",)}, WINDOW, 0.0) == Begin({"in": 70}, 20.0, 20.0)
    assert choose_cold_begin(old, {"out": ("in",)}, WINDOW, 10.0) == Begin({"in": None}, 20.0, 10.0)


def test_one_that_can_run_no_more_ends_at_its_watermark():
    """Windows before it without rows are its own, too: late rows of them stay late."""
    slow = make_batch(1, 0, query="slow", watermark=18.0)
    upto = choose_cold_upto(make_old(make_batch(1, 1, watermark=47.0), slow))
    assert (upto.window, dict(upto.by_query)) == (40.0, {"slow": 10.0})


def test_what_was_read_before_the_old_graph_began_bounds_the_new_one():
    """It has read nothing itself yet; windows that reach further back are not whole in it."""
    begun = make_epoch(2, start={"in": 70}, x_rows_from=20.0, boundary=20.0)
    query = tell(*FIRST).epochs[1].queries["out"]
    old = EpochStory(begun, into=make_fence(1, 20), queries={"out": query})
    assert choose_begin(old, {"out": ("in",)}, WINDOW, 10.0) == Begin({"in": {"logOffset": 0}}, 30.0, 20.0, {"out": 0})
