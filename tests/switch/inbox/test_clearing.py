"""What goes of an inbox: never a row that a graph, or one that takes over from it, still has to read."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.switch.advising.boundary import choose_cold_begin
from airflow_dagsched.switch.inbox.clearing import (
    DEAD_BYTES,
    DEAD_S,
    KEPT_ENTRIES,
    DeadLetters,
    choose_dead,
    list_passed,
    make_cleared,
)
from airflow_dagsched.switch.inbox.entries import Cleared, RoutedRows
from airflow_dagsched.switch.inbox.inbox_story import InboxStory, fold_entry, is_entry_needed, restore_inbox
from airflow_dagsched.switch.inbox.routing import make_entry
from airflow_dagsched.switch.records import Record
from tests.switch.drawn import make_batch, make_drained, make_epoch, make_fence, make_stopped, tell
from tests.switch.inbox.test_routing import FIRST_INBOX, INBOX, SECOND

LATE = make_batch(1, 1, watermark=57.0)


def fill(newest: list[float]) -> InboxStory:
    """An inbox with these rows, a file a batch, and as much behind them as always stays."""
    inbox = InboxStory()
    for batch, each in enumerate([*newest, *[200.0] * KEPT_ENTRIES]):
        rows = RoutedRows(batch, each, {"1": 1}, files=(f"rows/dagsched_epoch=1/{batch}",), tag="aaaaaaaa")
        entry = make_entry(inbox, rows, inbox.last + 1, 0.0)
        assert entry is not None
        inbox = fold_entry(inbox, entry)
    return inbox


def list_going(inbox: InboxStory, *records: Record) -> list[int]:
    return [each.batch for each in list_passed(tell(*FIRST_INBOX, *records), inbox)]


def test_rows_go_once_the_window_behind_them_is_emitted():
    inbox = fill([12.0, 49.0, 50.0, 3.0])
    assert list_going(inbox, LATE) == [0, 1]
    assert list_going(inbox, replace(LATE, watermark=60.0)) == [0, 1, 2, 3], "those before it have newer rows by then"


def test_the_last_entries_stay_whatever_is_in_them():
    assert list_going(fill([]), replace(LATE, watermark=1000.0)) == []


def test_each_graph_that_reads_counts():
    inbox = fill([12.0, 49.0])
    assert list_going(inbox, LATE, *SECOND) == [], "it has no batch yet"
    second = make_batch(2, 0, watermark=20.0)
    assert list_going(inbox, LATE, *SECOND, second) == [0]
    switched = (LATE, *SECOND, make_fence(1, 60), second, make_batch(1, 2, watermark=60.0), make_drained(1))
    assert list_going(inbox, *switched, make_stopped(1)) == [0]


def test_of_a_graph_that_is_stopped_and_may_go_on_nothing_goes_that_it_has_not_emitted():
    assert list_going(fill([12.0, 49.0, 50.0]), LATE, make_stopped(1)) == [0, 1]


def test_before_any_graph_owns_a_window_all_stays():
    first = (make_epoch(1, **INBOX), *FIRST_INBOX[1:-1])
    assert list_passed(tell(*first), fill([0.0])) == ()


times = st.floats(0, 100, allow_nan=False)


@given(st.lists(times, max_size=20), times, st.sampled_from([5.0, 10.0]))
def test_who_takes_over_from_a_graph_that_runs_no_more_finds_its_rows(newest: list[float], at: float, window: float):
    """Whatever goes is before the place it begins at, also with windows that are a part of the old ones."""
    story = tell(*FIRST_INBOX, replace(LATE, watermark=at))
    inbox = fill(newest)
    begin = choose_cold_begin(story.epochs[1], {"out": ("a", "b")}, window, 0.0)
    passed = list_passed(story, inbox)
    assert passed == inbox.filled[: len(passed)]
    assert all(each < (begin.rows_from or 0.0) for each in newest[: len(passed)])


def test_what_was_cleared_is_not_cleared_again_nor_kept_by_a_shorter_log():
    inbox = fill([12.0, 49.0])
    cleared = make_cleared(inbox, 2, inbox.last + 1, 0.0)
    assert cleared is not None
    entries = (*inbox.filled, cleared)
    after = fold_entry(inbox, cleared)
    assert after.filled == inbox.filled[2:]
    assert list_going(after, LATE) == []
    assert make_cleared(after, 2, after.last + 1, 0.0) is None
    needed = [each for each in entries if is_entry_needed(after, each)]
    assert needed == [*inbox.filled[2:], cleared]
    assert restore_inbox(needed, after.last) == after
    assert isinstance(needed[-1], Cleared)


def test_dead_letters_stay_for_days_and_the_oldest_go_where_they_are_too_many():
    now = 10 * DEAD_S
    ages = {"a": DEAD_S + 1, "b": 9, "c": 8}
    old, first, second = (DeadLetters(name, DEAD_BYTES // 2, now - age) for name, age in ages.items())
    assert choose_dead([old, first, second], now) == ("a",)
    assert choose_dead([replace(first, bytes=first.bytes + 1), second], now) == ("b",)
    assert choose_dead([], now) == ()
