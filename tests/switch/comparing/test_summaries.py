"""Summaries of batches: what they tell apart, however rows come in batches, and what their files remember."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.switch.comparing import summary_files
from airflow_dagsched.switch.comparing.flow_comparison import compare_windows
from airflow_dagsched.switch.comparing.summary import Summaries, Summary, is_same_summary, merge_summaries
from airflow_dagsched.switch.comparing.summary_files import SummaryFiles
from airflow_dagsched.switch.places import EpochPlaces

Row = tuple[int, int]
"""Window, and a number."""
batches = st.lists(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), max_size=6), max_size=6)


def condense(rows: list[Row]) -> Summaries:
    """As Spark would; the digest of a row is as good as any."""
    windows = {window for window, _ in rows}
    found = {end: [number for window, number in rows if window == end] for end in windows}
    return {
        10.0 * end: Summary(len(ours), {"n": str(sum(ours))}, str(sum(hash((end, n)) % 2**64 for n in ours)))
        for end, ours in found.items()
    }


def merge(parts: list[list[Row]]) -> Summaries:
    found: Summaries = {}
    for each in parts:
        found = merge_summaries(found, condense(each))
    return found


@settings(max_examples=60, deadline=None)
@given(batches, batches)
def test_windows_differ_where_their_rows_do(old: list[list[Row]], new: list[list[Row]]):
    """Whichever batches rows came in, and how often each is there."""
    rows = [Counter(row for part in parts for row in part) for parts in (old, new)]
    unlike = {10.0 * end for end in range(1, 4) if _only(rows[0], end) != _only(rows[1], end)}
    there = {10.0 * window for window, _ in rows[0] + rows[1]}
    same, found = compare_windows(merge(old), merge(new), 0.0, 30.0)
    assert {each.window for each in found} == unlike
    assert same == len(there - unlike)


def _only(rows: Counter[Row], end: int) -> Counter[Row]:
    return Counter({row: count for row, count in rows.items() if row[0] == end})


def test_windows_that_one_may_not_have_emitted_are_not_compared():
    old = {end: Summary(1) for end in (10.0, 20.0, 30.0)}
    assert compare_windows(old, {}, 10.0, 20.0)[1][0].window == 20.0
    assert compare_windows(old, {}, 20.0, 20.0) == (0, ())
    assert compare_windows(old, {}, 0.0, None) == (0, ())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("2.0E3", "2000", True), ("1E+40", str(10**40 + 1), False), (None, None, True), (None, "0", False)],
)
def test_sums_are_compared_as_numbers(one: str | None, other: str | None, same: bool):
    assert is_same_summary(Summary(1, {"n": one}), Summary(1, {"n": other})) is same


def test_sums_lose_no_digit_and_are_no_error():
    large = Summary(1, {"n": str(2**63), "m": "NaN", "k": None})
    (found,) = merge_summaries({0.0: large}, {0.0: Summary(1, {"n": "0.5", "m": "1", "k": "2"})}).values()
    assert found == Summary(2, {"n": "9223372036854775808.5", "m": "NaN", "k": "2"})


@pytest.fixture
def files(tmp_path: Path) -> SummaryFiles:
    return SummaryFiles(EpochPlaces(tmp_path), "out")


def test_a_batch_that_is_repeated_counts_once(files: SummaryFiles):
    for batch in (4, 5, 5, 6):
        files.write(batch, 2, {10.0 * batch: Summary(1), 100.0: Summary(2)}, 30.0)
    assert files.read(2) == ({40.0: Summary(1), 50.0: Summary(1), 60.0: Summary(1), 100.0: Summary(6)}, 30.0)


def test_each_query_and_each_switch_has_its_own(files: SummaryFiles):
    SummaryFiles(files.places, "out-1").write(7, 2, {70.0: Summary(7)}, None)
    files.write(4, 2, {40.0: Summary(1)}, None)
    files.write(9, 3, {90.0: Summary(1)}, 80.0)
    assert files.read(2) == ({}, None)
    assert files.read(3) == ({90.0: Summary(1)}, 80.0)
    assert SummaryFiles(files.places, "out-1").read(2) == ({70.0: Summary(7)}, None)


def test_windows_of_files_that_went_are_told(files: SummaryFiles, monkeypatch: pytest.MonkeyPatch):
    """Also of those that went long before."""
    monkeypatch.setattr(summary_files, "KEPT", 2)
    for batch in range(5):
        # Of event times a batch may have any windows.
        files.write(batch, 2, {10.0 * batch: Summary(1), **({50.0: Summary(1)} if batch == 1 else {})}, None)
    assert files.read(2) == ({30.0: Summary(1), 40.0: Summary(1)}, 50.0)
    assert len(list((files.places.folder / "compare").iterdir())) == 2
