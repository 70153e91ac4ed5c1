"""Records and logs for tests: one flow with windows of ten seconds, by default.

::

    event time   0    10   20   30   40   50   60
    window        ─10─ ─20─ ─30─ ─40─ ─50─ ─60─        each by its end
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow_dagsched.switch.fold import fold
from airflow_dagsched.switch.records import Aborted, Batch, Current, Drained, Epoch, Fence, Record, Started, Stopped
from airflow_dagsched.switch.story import Story

WINDOW = 10.0


def make_epoch(epoch: int, **fields: Any) -> Epoch:
    """A request; it follows the epoch before it."""
    defaults: dict[str, Any] = {
        "n": 0, "at": 0.0, "epoch": epoch, "fingerprint": f"code {epoch}", "run_id": f"run {epoch}",
        "x_folder": f"{epoch:08x}", "x_after": epoch - 1, "x_queries": ("out",), "x_window": WINDOW,
    }  # fmt: skip
    return Epoch(**{**defaults, **fields})


def make_started(epoch: int, **fields: Any) -> Started:
    return Started(**{"n": 0, "at": 0.0, "epoch": epoch, "application": f"app {epoch}", **fields})


def make_batch(epoch: int, batch: int, first: float | None = None, last: float | None = None, **fields: Any) -> Batch:
    """A batch with one row a window; the epoch keeps all of it unless it says otherwise."""
    rows = 0 if first is None or last is None else int((last - first) / WINDOW) + 1
    defaults: dict[str, Any] = {
        "n": 0, "at": 0.0, "epoch": epoch, "query": "out", "batch": batch, "first": first, "last": last, "rows": rows,
        "kept": rows, "watermark": last or 0.0, "files": (), "x_begin": {"in": {"logOffset": batch}},
        "x_newest": {"in": None},
    }  # fmt: skip
    return Batch(**{**defaults, **fields})


def name_files(record: Record) -> Record:
    """The record; of a batch that keeps rows and names no files, with one of its own."""
    if not isinstance(record, Batch) or record.files or not record.kept:
        return record
    return replace(record, files=(f"{record.epoch}-{record.query}-{record.batch}.parquet",))


def make_fence(old: int, upto: float, **fields: Any) -> Fence:
    return Fence(**{"n": 0, "at": 0.0, "from_": old, "to": old + 1, "upto": upto, **fields})


def make_drained(epoch: int) -> Drained:
    return Drained(n=0, at=0.0, epoch=epoch)


def make_current(epoch: int) -> Current:
    return Current(n=0, at=0.0, epoch=epoch)


def make_stopped(epoch: int, **fields: Any) -> Stopped:
    return Stopped(**{"n": 0, "at": 0.0, "epoch": epoch, "reason": "replaced", **fields})


def make_aborted(epoch: int, **fields: Any) -> Aborted:
    return Aborted(**{"n": 0, "at": 0.0, "epoch": epoch, "reason": "no executors", **fields})


def number(records: tuple[Record, ...], first: int = 1) -> tuple[Record, ...]:
    """The records with the numbers, and times, that they have in a log."""
    return tuple(replace(each, n=at, at=each.at or float(at)) for at, each in enumerate(records, first))


def tell(*records: Record) -> Story:
    """The story of these records, numbered as they come."""
    story = Story()
    for each in number(records):
        story = fold(story, each)
    return story


def go_on(story: Story, *records: Record) -> Story:
    """The story with more of them."""
    for each in number(records, story.last + 1):
        story = fold(story, each)
    return story


FIRST = (make_epoch(1), make_started(1), make_batch(1, 0), make_current(1))
"""A flow's first graph runs, and has read nothing yet."""
