"""Batches: each counts once, while its epoch runs, and for the windows that are its epoch's."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.switch.checking.facts import Batch, Log, Violation
from airflow_dagsched.switch.checking.owners import Owned, find_owned


def check_numbers(log: Log) -> Iterator[Violation]:
    """Of each query they are 0, 1, 2 ..; a snapshot has left out some."""
    latest: dict[tuple[int, str], int] = {}
    for each in log.batches:
        before = latest.get((each.epoch, each.query), -1)
        if each.batch <= before:
            yield Violation("batch twice", each.n, f"{each} comes behind batch {before}")
        elif each.batch > before + 1 and each.n > log.compacted:
            yield Violation("batch missing", each.n, f"{each} comes behind batch {before}")
        latest[each.epoch, each.query] = max(before, each.batch)


def check_watermarks(log: Log) -> Iterator[Violation]:
    """Of each query it grows, also over restarts: Spark's checkpoints keep it, and no batch is of an older one."""
    newest: dict[tuple[int, str], Batch] = {}
    for each in log.batches:
        before = newest.get((each.epoch, each.query))
        if before is not None and each.batch > before.batch and each.watermark < before.watermark:
            told = f"{each} begins with watermark {each.watermark:.10g}, and record {before.n} did with "
            yield Violation("watermark", each.n, f"{told}{before.watermark:.10g}")
        newest[each.epoch, each.query] = each


def check_running(log: Log) -> Iterator[Violation]:
    """Only what has started, and has neither ended nor handed on its state, executes batches."""
    for each in log.batches:
        stopped = log.find_last("stopped", each.epoch, each.n)
        aborted = log.find_last("aborted", each.epoch, each.n)
        if aborted:
            yield Violation("batch of no one", each.n, f"{each} comes behind record {aborted}, which aborted it")
        elif log.find_last("started", each.epoch, each.n) <= stopped:
            yield Violation("batch of no one", each.n, f"{each}, which has {'stopped' if stopped else 'not started'}")
        fence = log.find_fence_out_of(each.epoch, each.n)
        if fence and fence.new in log.epochs and log.epochs[fence.new].channel == "carry":
            yield Violation(
                "batch of no one", each.n, f"{each} comes behind record {fence.n}, which handed its state on"
            )


def check_windows(log: Log) -> Iterator[Violation]:
    """Rows are of windows."""
    for each in log.batches:
        if (each.first is None) != (each.last is None) or (each.first is None and each.rows):
            yield Violation("windows", each.n, f"{each} has {each.rows} rows of windows {each.first} to {each.last}")
        elif each.first is not None and each.last is not None and each.first > each.last:
            yield Violation("windows", each.n, f"{each} is of windows {each.first:.10g} to {each.last:.10g}")


def check_kept(log: Log) -> Iterator[Violation]:
    """Rows of windows that are its epoch's are in the table, when the batch is recorded, and no others."""
    for each in log.batches:
        if each.kept > each.rows:
            yield Violation("kept", each.n, f"{each} has {each.rows} rows, and keeps {each.kept}")
        elif log.find_last("drained", each.epoch, each.n):
            if each.kept:
                yield Violation("kept", each.n, f"{each} keeps {each.kept} rows, and its epoch is drained")
        elif not _is_beginning_unknown(log, each):
            yield from _judge_kept(each, find_owned(log, each.epoch, each.query, each.n))


def _is_beginning_unknown(log: Log, batch: Batch) -> bool:
    """Whether a snapshot has left out the fence before which none of its windows were the epoch's."""
    oldest = batch.epoch == min(log.epochs, default=0) and batch.epoch > 1
    return bool(log.compacted) and oldest and log.find_fence_into(batch.epoch) is None


def _judge_kept(batch: Batch, owned: Owned) -> Iterator[Violation]:
    if batch.first is None or batch.last is None:
        return
    ends = {batch.first, batch.last}  # of each there is a row
    inside = [window for window in ends if owned.has(window)]
    least = batch.rows if len(inside) == len(ends) else len(inside)
    overlaps = batch.last > owned.after and batch.first <= owned.upto
    most = batch.rows - (len(ends) - len(inside)) if overlaps else 0
    if not least <= batch.kept <= most:
        told = f"{least} of {batch.rows}" if least == most else f"{least} to {most} of {batch.rows}"
        windows = f"windows {batch.first:.10g} to {batch.last:.10g}"
        yield Violation("kept", batch.n, f"{batch} keeps {batch.kept} rows of {windows}, and {told} are its own")


def check_given_up(log: Log) -> Iterator[Violation]:
    """Nothing in the table is from an epoch that was given up."""
    for each in log.batches:
        if each.kept and ("aborted", each.epoch) in log.marks:
            yield Violation("kept", each.n, f"{each} keeps {each.kept} rows, and its epoch is aborted")


def check_files(log: Log) -> Iterator[Violation]:
    """A file comes into the table once, and none of a batch that is not in it; what is kept is in files."""
    seen: dict[str, int] = {}
    for each in log.batches:
        if bool(each.files) != (each.kept > 0):
            says = "has no files" if each.kept else "has files"
            yield Violation("files", each.n, f"{each} keeps {each.kept} rows, and {says}")
        for file in each.files:
            if file in seen:
                yield Violation("file twice", each.n, f"{file} is of record {seen[file]}, too")
            seen.setdefault(file, each.n)


RULES = (check_numbers, check_watermarks, check_running, check_windows, check_kept, check_given_up, check_files)
