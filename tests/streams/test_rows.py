"""The kit's rows are what they say, and its oracle computes what one computes by hand."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from tests.streams.rows import (
    BEGIN,
    NO_DIFFERENCE,
    SECOND,
    Difference,
    Row,
    Rows,
    Sums,
    add_file,
    compare,
    read_table,
    sum_windows,
)

ROWS = (
    Row(1 * SECOND, "a", 1, Decimal("1.10")),
    Row(9_999_999, "a", 2, Decimal("-0.05")),
    Row(10 * SECOND, "a", 4, Decimal("2.00")),
    Row(5 * SECOND, "b", 8, Decimal("3.00")),
    Row(5 * SECOND, "b", 99, Decimal("9.00"), is_stale=True),
)
"""A row exactly on an end is of the next window."""
SUMS = {
    (10 * SECOND, "a"): Sums(2, 3, Decimal("1.05")),
    (10 * SECOND, "b"): Sums(1, 8, Decimal("3.00")),
    (20 * SECOND, "a"): Sums(1, 4, Decimal("2.00")),
}


def test_sums_are_those_of_all_rows_but_stale_ones():
    assert sum_windows(ROWS, 10) == SUMS


def test_windows_and_rows_can_be_chosen():
    assert sum_windows(ROWS, 10, upto=10) == {key: sums for key, sums in SUMS.items() if key[0] == 10 * SECOND}
    assert sum_windows(ROWS, 10, after=10) == {key: sums for key, sums in SUMS.items() if key[0] == 20 * SECOND}
    assert set(sum_windows(ROWS, 10, keep=lambda row: row.user == "b")) == {(10 * SECOND, "b")}


@given(st.integers(0, 99), st.integers(1, 4), st.integers(1, 3), st.sampled_from([3, 40]))
def test_rows_are_late_by_less_than_the_lateness_or_by_far_too_much(
    seed: int, apart: int, together: int, per_file: int
):
    """However many files, up to half of ``apart``, a batch has, as Spark judges late rows."""
    drawn = Rows(per_file=per_file, seed=seed, apart=2 * together - 1 + apart, stale=0.3).draw(20)
    newest, watermarks = 0, [0]
    for at in range(0, len(drawn), together):
        batch = [row for rows in drawn[at : at + together] for row in rows]
        late = [
            row
            for row in batch
            if (row.at // (10 * SECOND) + 1) * 10 * SECOND <= watermarks[max(len(watermarks) - 2, 0)]
        ]
        assert late == [row for row in batch if row.is_stale]
        newest = max(newest, *(row.at for row in batch))
        watermarks.append(newest - 5 * SECOND)


def find_end(row: Row) -> int:
    return (row.at // (10 * SECOND) + 1) * 10 * SECOND


def test_rows_are_the_same_each_time_and_out_of_order():
    drawn = Rows().draw(6)
    assert drawn[:3] == Rows().draw(3)
    times = [row.at for rows in drawn for row in rows if not row.is_stale]
    assert times != sorted(times)
    assert any(row.is_stale for rows in drawn for row in rows)
    assert min(times) >= BEGIN - 5 * SECOND


def test_files_have_times_of_their_own_and_all_of_the_rows(tmp_path: Path):
    drawn = Rows(per_file=4).draw(3)
    files = [add_file(tmp_path, rows) for rows in drawn]
    assert len({each.stat().st_mtime for each in files}) == 3
    assert sorted(files, key=lambda each: each.stat().st_mtime) == files
    read = [(each["user"], each["clicks"], each["amount"]) for each in pq.read_table(files[1]).to_pylist()]
    assert read == [(each.user, each.clicks, each.amount) for each in drawn[1]]
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["000000.parquet", "000001.parquet", "000002.parquet"]


def write_sums(path: Path, sums: dict[tuple[int, str], Sums]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = [
        {"window": {"start": end - 10 * SECOND, "end": end}, "user": user, **each._asdict()}
        for (end, user), each in sums.items()
    ]
    moment = pa.timestamp("us", tz="UTC")
    kinds = [
        ("window", pa.struct([("start", moment), ("end", moment)])), ("user", pa.string()), ("rows", pa.int64()),
        ("clicks", pa.int64()), ("amount", pa.decimal128(22, 2)),
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(listed, pa.schema(kinds)), path)


def test_a_table_is_compared_row_by_row(tmp_path: Path):
    assert compare({}, read_table(tmp_path)) == NO_DIFFERENCE
    write_sums(tmp_path / "a.parquet", SUMS)
    write_sums(tmp_path / ".draft" / "a.parquet", SUMS)
    write_sums(tmp_path / "_temporary" / "a.parquet", SUMS)
    assert compare(SUMS, read_table(tmp_path)) == NO_DIFFERENCE
    one, two, three = SUMS
    write_sums(tmp_path / "b.parquet", {one: SUMS[one], (30 * SECOND, "c"): SUMS[two]})
    other = {**SUMS, two: Sums(1, 9, Decimal(3)), (40 * SECOND, "a"): SUMS[one]}
    assert compare(other, read_table(tmp_path)) == Difference(((40 * SECOND, "a"),), (one,), (two, (30 * SECOND, "c")))
    assert three not in compare(other, read_table(tmp_path)).wrong
