"""Bulk rows are what they say, and are summed as the slow way sums them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.proof.bulk import STALE, Bulk, Owned, count_stale, sum_files
from tests.streams.rows import BEGIN, SECOND, Row, sum_windows

BULK = Bulk(rows=2_000, files=20, users=3)


def read_rows(file: Path) -> Iterator[Row]:
    for each in pq.read_table(file).to_pylist():
        at = round(each["ts"].timestamp() * SECOND)
        yield Row(at, each["user"], each["clicks"], each["amount"], each[STALE])


def test_each_epoch_s_windows_are_summed_by_its_own_definition(tmp_path: Path):
    files = [each.path for each in BULK.stage(tmp_path / "staged")]
    rows = [row for file in files for row in read_rows(file)]
    fence, end = BEGIN // SECOND + 100, BEGIN // SECOND + 390
    old = sum_windows(rows, 10, upto=fence, keep=lambda row: row.user != "user 0")
    new = sum_windows(rows, 10, after=fence, upto=end)
    threefold = {key: sums._replace(clicks=sums.clicks * 3) for key, sums in new.items()}
    owned = (Owned(0, fence, without="user 0"), Owned(fence, end, 3))
    assert sum_files(files, 10, owned) == {**old, **threefold}
    assert count_stale(files) == sum(row.is_stale for row in rows) > 0


@pytest.mark.parametrize("together", [1, 2, 3])
def test_rows_are_late_by_less_than_the_lateness_or_by_far_too_much(tmp_path: Path, together: int):
    """However a graph makes batches of one or two files, as Spark judges late rows: by the watermark of the batch
    before.
    """
    staged = list(BULK.stage(tmp_path / "staged"))
    newest, watermarks = 0, [0]
    for at in range(0, len(staged), together):
        batch = [row for file in staged[at : at + together] for row in read_rows(file.path)]
        closed = watermarks[max(len(watermarks) - 2, 0)]
        late = [row for row in batch if (row.at // (10 * SECOND) + 1) * 10 * SECOND <= closed]
        assert late == [row for row in batch if row.is_stale]
        newest = max(newest, *(row.at for row in batch))
        assert newest == max(each.newest for each in staged[: at + together])
        watermarks.append(newest - 5 * SECOND)
