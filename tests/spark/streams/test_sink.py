"""The sink under real queries: what is in the table is what the log says, whichever batches are tried again or lost."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.streams.draft_writer import RowWindows
from airflow_dagsched.spark.streams.drafts import list_drafts, place_aside
from airflow_dagsched.spark.streams.output_window import OutputWindow
from airflow_dagsched.spark.streams.sink import BatchBegin, StreamSink
from airflow_dagsched.spark.streams.targets import (
    DeltaTarget,
    FunctionTarget,
    find_mismatch,
    name_transaction,
    open_table_target,
)
from tests.spark.streams.flow import Flow
from tests.switch.drawn import WINDOW, make_drained, make_fence

pytestmark = [pytest.mark.spark, pytest.mark.slow]
START = 1_000_000_000
"""Event times are told from here, in seconds."""
BY_WINDOW = OutputWindow("window", "window")


def count_by_window(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.window("ts", "10 seconds")).count()


class Stream:
    """Files of events, and a query over them that counts by window."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.flow = Flow(folder / "work")
        self.table = Table(str(folder / "data" / "counts"), mode="append")
        self.files = 0

    def feed(self, *seconds: int) -> None:
        """One more file, of events at these seconds."""
        folder = self.folder / "in"
        folder.mkdir(exist_ok=True)
        moments = (datetime.fromtimestamp(START + each, UTC).isoformat() for each in seconds)
        path = folder / f"{self.files}.json"
        path.write_text("".join(f'{{"ts": "{each}"}}\n' for each in moments))
        self.files += 1
        # Spark reads the older file first.
        os.utime(path, (START + self.files, START + self.files))

    def open_sink(self, epoch: int = 1, **parts: Any) -> StreamSink:
        windows = RowWindows(parts.get("window", BY_WINDOW), WINDOW)
        target = parts.get("target") or open_table_target(self.spark, self.table, self.flow.places, windows)
        return StreamSink(
            log=self.flow.open_log(),
            epoch=epoch,
            query="out",
            target=target,
            read_begin=parts.get("read_begin", lambda batch: BatchBegin(0.0, {"in": None}, {"in": None})),
            check=parts.get("check", lambda: None),
        )

    def run(
        self,
        take: Callable[[DataFrame, int], None],
        name: str = "one",
        compute: Callable[[DataFrame], DataFrame] = count_by_window,
    ) -> None:
        """All that is there, a file a batch, from the checkpoint of this name."""
        rows = self.spark.readStream.schema("ts timestamp").option("maxFilesPerTrigger", 1).json(f"{self.folder}/in")
        writer = (
            compute(rows.withWatermark("ts", "0 seconds"))
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", f"{self.folder}/check-{name}")
        )
        writer.trigger(availableNow=True).start().awaitTermination()

    def read_table(self) -> dict[int, int]:
        """Window, by its end in seconds from the start -> count; no window twice."""
        if not Path(self.table.location).exists():
            return {}
        rows = self.spark.read.format(self.table.format).load(self.table.location).collect()
        ends = Counter(int(row.window.end.timestamp()) - START for row in rows)
        assert set(ends.values()) <= {1}
        return {int(row.window.end.timestamp()) - START: row["count"] for row in rows}

    def list_drafts(self, sink: StreamSink) -> tuple[object, ...]:
        return list_drafts(LocalStore(), sink._target.place)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    made = Stream(spark, tmp_path)
    made.flow.begin()
    for second in (1, 11, 21, 31):
        made.feed(second, second)
    return made


def test_each_batch_is_recorded_and_closed_windows_are_in_the_table(stream: Stream):
    """Also batches without rows, whose files are nobody's."""
    sink = stream.open_sink()
    stream.run(sink.take)
    assert stream.read_table() == {10: 2, 20: 2, 30: 2}
    batches = stream.flow.list_batches()
    assert [each.batch for each in batches] == list(range(len(batches)))
    assert [(each.first, each.last) for each in batches if each.rows] == [
        (START + end, START + end) for end in (10, 20, 30)
    ]
    assert all((each.kept, bool(each.files)) == (each.rows, each.rows > 0) for each in batches)
    assert stream.list_drafts(sink) == ()


def test_a_batch_that_spark_did_not_commit_is_executed_again_and_counts_once(stream: Stream):
    """It fails behind the record: Spark repeats it, and checks that all its state was committed."""
    sink = stream.open_sink()
    tries: Counter[int] = Counter()

    def take(df: DataFrame, batch: int) -> None:
        sink.take(df, batch)
        tries[batch] += 1
        if tries[batch] == 1:
            raise RuntimeError("the driver is gone")

    for _ in range(20):
        try:
            stream.run(take)
            break
        except StreamingQueryException:
            continue
    assert set(tries.values()) == {2}
    assert stream.read_table() == {10: 2, 20: 2, 30: 2}
    assert len(stream.flow.list_batches()) == len(tries)


def test_what_a_driver_recorded_and_did_not_move_is_moved_by_the_next(stream: Stream):
    """Its draft is told by the tag; the next driver's own draft of the batch never comes to be."""
    torn = stream.open_sink()
    torn.finish = lambda: None  # type: ignore[method-assign]  # it dies behind the record

    def take(df: DataFrame, batch: int) -> None:
        torn.take(df, batch)
        if stream.flow.list_batches()[-1].rows:
            raise RuntimeError("the driver is gone")

    with pytest.raises(StreamingQueryException):
        stream.run(take)
    assert (stream.read_table(), len(stream.list_drafts(torn)) > 0) == ({}, True)
    stream.run(stream.open_sink().take)
    assert stream.read_table() == {10: 2, 20: 2, 30: 2}
    assert stream.list_drafts(torn) == ()


def test_each_window_is_of_one_epoch(stream: Stream):
    """Both compute all of them; the fence says whose they are, and a batch on both sides of it is made smaller."""
    stream.flow.request(2)
    stream.flow.add(make_fence(1, START + 20))
    old, new = stream.open_sink(1), stream.open_sink(2)
    stream.run(old.take, "old")
    assert stream.read_table() == {10: 2, 20: 2}
    whole = stream.spark.read.schema("ts timestamp").json(f"{stream.folder}/in").withWatermark("ts", "0 seconds")
    new.take(whole.groupBy(F.window("ts", "10 seconds")).count(), 0)
    assert stream.read_table() == {10: 2, 20: 2, 30: 2, 40: 2}
    last = stream.flow.list_batches()[-1]
    assert (last.epoch, last.rows, last.kept, last.first, last.last) == (2, 4, 2, START + 10, START + 40)
    assert old.finish() is None
    assert stream.list_drafts(new) == ()


def test_an_epoch_that_owns_nothing_yet_keeps_nothing(stream: Stream):
    stream.flow.request(2)
    sink = stream.open_sink(2)
    stream.run(sink.take, "new")
    assert [each.kept for each in stream.flow.list_batches()] == [0] * len(stream.flow.list_batches())
    assert (stream.read_table(), stream.list_drafts(sink)) == ({}, ())
    assert not Path(stream.table.location).exists()


def test_a_batch_of_an_epoch_whose_state_was_handed_over_is_refused(stream: Stream):
    """Spark must not commit it: its successor begins where the last recorded one ended."""
    stream.flow.request(2, channel="carry")
    stream.flow.add(make_fence(1, START + 20))
    sink = stream.open_sink(1)
    with pytest.raises(StreamingQueryException, match="handed over"):
        stream.run(sink.take)
    assert (len(stream.flow.list_batches()), stream.list_drafts(sink)) == (1, ())


def test_two_drivers_of_one_epoch_record_each_batch_once(stream: Stream):
    """Each with a checkpoint of its own: Spark would not stop the one that lost its lease."""
    sinks = [stream.open_sink(), stream.open_sink()]
    at_once = threading.Barrier(2)
    failed: list[BaseException] = []

    def take_with(sink: StreamSink) -> Callable[[DataFrame, int], None]:
        def take(df: DataFrame, batch: int) -> None:
            at_once.wait(60)
            sink.take(df, batch)

        return take

    def run(number: int) -> None:
        try:
            stream.run(take_with(sinks[number]), str(number))
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)
            at_once.abort()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert stream.read_table() == {10: 2, 20: 2, 30: 2}
    batches = [each.batch for each in stream.flow.list_batches()]
    assert batches == list(range(len(batches)))
    assert stream.list_drafts(sinks[0]) == ()


def test_windows_in_order_wait_for_those_before_them(stream: Stream):
    """The new graph's batch is written, and recorded once the old one has emitted all of its own."""
    stream.flow.request(2, x_order="window")
    stream.flow.add(make_fence(1, START + 10))
    looks = 0

    def check() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            passed = BatchBegin(START + 10.0)
            stream.open_sink(1, read_begin=lambda batch: passed).take(_select_windows(stream, 10), 1)
            stream.flow.add(make_drained(1))

    stream.open_sink(2, check=check).take(_select_windows(stream, 20, 30), 0)
    assert looks > 3
    assert [(each.epoch, each.kept) for each in stream.flow.list_batches()] == [(1, 0), (1, 1), (2, 2)]
    assert stream.read_table() == {10: 2, 20: 2, 30: 2}


def test_partitions_are_folders_also_of_what_is_kept_in_part(stream: Stream):
    stream.table = Table(stream.table.location, mode="append", partition_by=("day", "odd"))
    stream.flow.request(2)
    stream.flow.add(make_fence(1, START + 20))
    windows = _select_windows(stream, 10, 20, 30, 40)
    columns = F.lit("a b").alias("day"), F.col("count"), (F.col("count") % 4 == 0).alias("odd"), F.col("window")
    stream.open_sink(2).take(windows.select(*columns), 0)
    assert stream.read_table() == {30: 2, 40: 2}
    names = {
        str(path.parent.relative_to(stream.table.location)) for path in Path(stream.table.location).rglob("*.parquet")
    }
    assert names == {"day=a b/odd=false"}


def test_rows_without_windows_are_judged_by_the_event_time(stream: Stream):
    """A row on the end of a window is of the next one."""
    stream.flow.request(2)
    stream.flow.add(make_fence(1, START + 20))
    stream.feed(9, 10, 19, 20)
    stream.run(stream.open_sink(window=OutputWindow("ts", "time")).take, compute=lambda rows: rows.select("ts"))
    found = stream.spark.read.parquet(stream.table.location).collect()
    # The first file is of batch 0, which was recorded by hand.
    assert sorted(int(row.ts.timestamp()) - START for row in found) == [9, 10, 11, 11, 19]
    batch = stream.flow.list_batches()[-1]
    assert (batch.first, batch.last, batch.rows, batch.kept) == (START + 10, START + 30, 4, 3)


def test_rows_of_no_window_are_nobodys(stream: Stream):
    rows = stream.spark.createDataFrame([(START + 9,), (None,)], "at long")
    stream.open_sink(window=OutputWindow("ts", "time")).take(rows.select(F.timestamp_seconds("at").alias("ts")), 0)
    assert stream.spark.read.parquet(stream.table.location).count() == 1
    assert [(each.rows, each.kept, each.last) for each in stream.flow.list_batches()] == [(1, 1, START + 10)]


def test_a_function_gets_the_kept_rows_under_one_key_until_it_has_returned(stream: Stream):
    """It fails once: the batch is repeated, with the same rows and the same key."""
    calls: list[tuple[str, list[int]]] = []

    def send(rows: DataFrame, key: str) -> None:
        calls.append((key, [int(row.window.end.timestamp()) - START for row in rows.collect()]))
        if len(calls) == 1:
            raise OSError("the other side is away")

    def open_sink() -> StreamSink:
        epoch, windows = stream.flow.get_epoch(1), RowWindows(BY_WINDOW, WINDOW)
        return stream.open_sink(
            target=FunctionTarget(stream.spark, send, "dag/flow/out", place_aside(epoch, "out"), windows)
        )

    with pytest.raises(StreamingQueryException, match="the other side is away"):
        stream.run(open_sink().take)
    sink = open_sink()
    stream.run(sink.take)
    assert [ends for _, ends in calls] == [[10], [10], [20], [30]]
    assert calls[0] == calls[1]
    assert len({key for key, _ in calls}) == 3
    # The folder's name is another one where the flow's folder was removed, and epochs are counted from 1 again.
    assert calls[0][0].startswith("dag/flow/out/00000001/1/")
    assert stream.list_drafts(sink) == ()


def test_a_column_of_another_type_than_the_table_has_is_refused(stream: Stream):
    rows = stream.spark.range(1).selectExpr("cast(id as decimal(12,2)) as amount", "id as more", "'a' as day")
    assert find_mismatch(stream.spark, stream.table, rows.schema) == ""
    rows.write.partitionBy("day").parquet(stream.table.location)
    assert find_mismatch(stream.spark, stream.table, rows.schema) == ""
    whole = rows.selectExpr("cast(amount as bigint) as Amount", "day")
    said = find_mismatch(stream.spark, stream.table, whole.schema)
    assert said.startswith("column 'Amount' is bigint, and decimal(12,2) in the files of")


def test_a_format_with_a_log_of_its_own_is_appended_to_under_a_number_that_grows(stream: Stream):
    """Delta can't be had here: another format takes the same way, and the number is looked at as the option it is."""
    table = Table(stream.table.location, format="json", mode="append", partition_by=("count",))
    windows = RowWindows(BY_WINDOW, WINDOW)
    target = DeltaTarget(stream.spark, table, stream.flow.places, windows)
    sink = stream.open_sink(target=target)
    for number, end in enumerate((10, 20)):
        sink.take(_select_windows(stream, end), number)
    found = stream.spark.read.schema("window struct<start: timestamp, end: timestamp>, count long").json(table.location)
    assert {(int(row.window.end.timestamp()) - START, row["count"]) for row in found.collect()} == {(10, 2), (20, 2)}
    assert found.count() == 2
    assert stream.list_drafts(sink) == ()
    first, second = (name_transaction("flow", "0a1b2c3d", each) for each in stream.flow.list_batches())
    assert first["txnAppId"] == second["txnAppId"] == "flow/0a1b2c3d/out"
    assert int(first["txnVersion"]) < int(second["txnVersion"])
    kept = replace(table, format="delta")
    assert isinstance(open_table_target(stream.spark, kept, stream.flow.places, windows), DeltaTarget)


def _select_windows(stream: Stream, *ends: int) -> DataFrame:
    """The counts of these windows, as one batch."""
    rows = stream.spark.read.schema("ts timestamp").json(f"{stream.folder}/in").withWatermark("ts", "0 seconds")
    wanted: Iterable[int] = (START + end for end in ends)
    counts = rows.groupBy(F.window("ts", "10 seconds")).count()
    return counts.where(F.unix_seconds("window.end").isin(*wanted))
