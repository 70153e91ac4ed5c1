"""Where a query has ended is in its checkpoint, and kept whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_dagsched.spark.streams.carry.handed import HandedQuery, find_handed, keep_handed, read_handed

HANDED = HandedQuery(7, {"clicks": {"logOffset": 14}, "orders": None}, 80.5, {"clicks": 97.0, "orders": None})


def write_checkpoint(folder: Path) -> Path:
    """As Spark leaves it where it has committed batch 7, and has begun batch 8."""
    for name, batch, lines in (
        ("offsets", 7, [{"batchWatermarkMs": 80_500}, 'clicks:{"logOffset":14}']),
        ("offsets", 8, [{"batchWatermarkMs": 92_000}, 'clicks:{"logOffset":15}']),
        ("commits", 7, [{"nextBatchWatermarkMs": 92_000}]),
    ):
        path = folder / name / str(batch)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["v2", *(each if isinstance(each, str) else json.dumps(each) for each in lines)]))
    return folder


@pytest.mark.parametrize(("window_s", "late_before"), [(10.0, 90.0), (60.0, 80.5)])
def test_it_has_ended_with_the_batch_that_spark_has_committed(tmp_path: Path, window_s: float, late_before: float):
    """Rows are late for windows that it would have closed with what it has read, as for what it has closed."""
    newest, lengths = tmp_path / "newest.json", {"lateness_s": 5.0, "window_s": window_s}
    handed = find_handed(write_checkpoint(tmp_path), newest, 7, ("clicks",), **lengths)
    # A watermark is cut off to milliseconds.
    assert handed == HandedQuery(7, {"clicks": {"logOffset": 14}}, late_before, {"clicks": 97.000999})
    with pytest.raises(FileNotFoundError):
        find_handed(tmp_path, newest, 8, ("clicks",), **lengths)


def test_what_is_kept_is_there_whole_or_not_at_all(tmp_path: Path):
    kept = tmp_path / "carried"

    def die(folder: Path) -> None:
        (folder / "rows").touch()
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        keep_handed(HANDED, kept, die)
    assert not kept.exists()
    keep_handed(HANDED, kept, lambda folder: (folder / "keys.json").write_text("[]") and None)
    assert read_handed(kept) == HANDED
    assert sorted(each.name for each in kept.iterdir()) == ["handed.json", "keys.json"]


def test_newest_rows_are_those_of_both_graphs():
    """A graph that is to replay from there on must not take windows that the first one has begun for new."""
    assert HANDED.add_newest({"clicks": None, "orders": None}) == {"clicks": 97.0, "orders": None}
    assert HANDED.add_newest({"clicks": 98.0, "orders": 3.0}) == {"clicks": 98.0, "orders": 3.0}
    assert HANDED.add_newest({"clicks": 90.0}) == {"clicks": 97.0}
    assert HANDED.add_newest({"other": 1.0}) == {}
