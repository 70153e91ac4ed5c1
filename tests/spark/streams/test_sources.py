"""Where a query reads: what it gets of a source, and what Spark writes down of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, window

from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.spark.session.sessions import open_session
from airflow_dagsched.spark.steps.call_step import StepFault
from airflow_dagsched.spark.steps.source_rows import check_source_rows
from airflow_dagsched.spark.stream_driver.progress import Tally, merge_newest
from airflow_dagsched.spark.streams.checkpoint import read_begin
from airflow_dagsched.spark.streams.sink import RowCounts
from airflow_dagsched.spark.streams.sources import SETTINGS, SourceStart, open_source

BEGIN = 1_700_000_000.0
"""Event time of the first row, in seconds since 1970."""
FAR = 4_000_000_000.0
"""An event time in the next century."""
SPEC = SourceSpec("clicks", "json", "ts", schema="at double, key int", options={"maxFilesPerTrigger": "1"})
LATENESS_S = 5.0


@dataclass
class Ran:
    """A query that has read all files there are."""

    tallies: list[Tally]
    checkpoint: Path
    emitted: list[Any] = field(default_factory=list)
    batches: int = 0
    compiled: list[int] = field(default_factory=list)
    """Classes that Spark had compiled after each batch."""


def write(folder: Path, number: int, rows: list[tuple[float | None, int]]) -> None:
    lines = [json.dumps({"at": at, "key": key}) for at, key in rows]
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.json"
    path.write_text("\n".join(lines))
    # Spark reads files in the order of these.
    os.utime(path, (BEGIN + number, BEGIN + number))


def parse(rows: DataFrame) -> DataFrame:
    return rows.select(col("at").cast("timestamp").alias("ts"), "key")


def count_compiled(session: SparkSession) -> int:
    jvm: Any = session.sparkContext._jvm
    return int(jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount())


def run(spark: SparkSession, folder: Path, start: SourceStart, steps: Any = None) -> Ran:
    """Sum up by windows what is in ``folder``, batch by batch."""
    session = open_session(spark, {**SETTINGS, "spark.sql.shuffle.partitions": "1"})
    spec = SourceSpec(SPEC.name, SPEC.format, "ts", f"{folder}/in", SPEC.schema, SPEC.options)
    rows = open_source(session, spec, StreamSettings(10, LATENESS_S, 1), parse, start)
    rows = steps(rows) if steps else rows
    ran = Ran([Tally()], folder / "checkpoint")

    def take(df: DataFrame, batch: int) -> None:
        ran.emitted += [(row["window"]["end"].timestamp(), row["count"]) for row in df.collect()]
        ran.batches = batch + 1
        ran.compiled.append(count_compiled(session))

    writer = rows.groupBy(window("ts", "10 seconds")).count().writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", str(ran.checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    for each in query.recentProgress:
        ran.tallies[0].add(each)
    return ran


def test_a_filter_of_the_author_hides_no_row_from_the_watermark(spark: SparkSession, tmp_path: Path):
    write(tmp_path / "in", 0, [(BEGIN, 1), (BEGIN + 2, 9), (None, 1), (FAR, 1)])
    write(tmp_path / "in", 1, [(BEGIN + 17, 9), (BEGIN + 3, 1)])
    write(tmp_path / "in", 2, [(BEGIN + 16, 9)])
    # Late by the watermark of the batch before.
    write(tmp_path / "in", 3, [(BEGIN + 2, 1)])
    ran = run(spark, tmp_path, SourceStart(), lambda rows: rows.where("key < 5"))
    begins = [read_begin(ran.checkpoint, batch, ["clicks"], LATENESS_S, {}) for batch in range(3)]
    # The newest rows, 2 and 17, are filtered away. Watermarks are cut to milliseconds.
    assert [each.newest["clicks"] for each in begins] == [None, BEGIN + 2.000999, BEGIN + 17.000999]
    assert [each.watermark for each in begins] == [0, BEGIN - 3, BEGIN + 12]
    assert [each.offsets for each in begins] == [
        {"clicks": None},
        {"clicks": {"logOffset": 0}},
        {"clicks": {"logOffset": 1}},
    ]
    # The last row's window has been emitted; the absurd one has moved nothing.
    assert ran.emitted == [(BEGIN + 10, 2)]
    tally = ran.tallies[0]
    assert (tally.counts, merge_newest(ran.tallies)) == (RowCounts(1, 1, 1, read=8), {"clicks": BEGIN + 17})
    assert tally.watermark == BEGIN + 12


def test_rows_of_before_are_no_rows(spark: SparkSession, tmp_path: Path):
    write(tmp_path / "in", 0, [(BEGIN + 3, 1), (BEGIN + 12, 1)])
    write(tmp_path / "in", 1, [(BEGIN + 40, 1)])
    ran = run(spark, tmp_path, SourceStart(rows_from=BEGIN + 10))
    assert ran.emitted == [(BEGIN + 20, 1)]
    assert merge_newest(ran.tallies) == {"clicks": BEGIN + 40}


def test_no_batch_is_compiled_anew_for_its_time(spark: SparkSession, tmp_path: Path):
    for number in range(4):
        write(tmp_path / "in", number, [(BEGIN + 20 * number, 1)])
    ran = run(spark, tmp_path, SourceStart())
    # The last one has no rows. Spark makes a class for each watermark, which tells what state goes, but for one it has.
    _, *before, with_rows, _ = ran.compiled
    assert all(later - earlier <= 1 for earlier, later in pairwise((*before, with_rows)))


def write_offsets(checkpoint: Path, batch: int, watermark_ms: int, lines: list[str], version: str = "v2") -> None:
    (checkpoint / "offsets").mkdir(exist_ok=True)
    text = "\n".join([version, json.dumps({"batchWatermarkMs": watermark_ms}), *lines])
    (checkpoint / "offsets" / str(batch)).write_text(text)


@pytest.mark.parametrize(
    ("sources", "watermark_ms", "newest"),
    [
        # The least of two watermarks bounds neither source.
        (["a", "b"], 1_700_000_000_000, {}),
        # No row has moved it, or one of fifty years ago.
        (["a"], 0, {}),
        (["a"], 1_700_000_000_250, {"a": BEGIN + 5.250999}),
    ],
)
def test_what_is_not_known_is_left_out(
    tmp_path: Path, sources: list[str], watermark_ms: int, newest: Mapping[str, float]
):
    write_offsets(tmp_path, 0, 0, ['a:{"logOffset": 3}', "b:-"])
    write_offsets(tmp_path, 1, watermark_ms, ['a:{"logOffset": 4}', 'b:{"logOffset": 0}'])
    begin = read_begin(tmp_path, 1, sources, LATENESS_S, {})
    assert begin.end == read_begin(tmp_path, 1, sources, 0.0, {}).end != read_begin(tmp_path, 0, sources, 0.0, {}).end
    assert begin.newest == newest
    assert begin.offsets == {"a": {"logOffset": 3}, "b": None} if len(sources) == 2 else {"a": {"logOffset": 3}}


def test_a_checkpoint_without_names_is_no_checkpoint_of_ours(tmp_path: Path):
    write_offsets(tmp_path, 0, 0, ['{"logOffset": 3}'], version="v1")
    with pytest.raises(ValueError, match="v1, not v2"):
        read_begin(tmp_path, 0, ["a"], LATENESS_S, {})


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["key"], "returns no column 'ts', which is its event_time: it has key"),
        (["at ts"], "returns 'ts', its event_time, as double, and windows are of timestamps: .*cast"),
        (["cast(timestamp_seconds(at) as timestamp_ntz) TS"], "returns 'ts', its event_time, as timestamp_ntz, and"),
    ],
)
def test_what_a_watermark_can_not_be_put_on_says_the_way_out(spark: SparkSession, columns: list[str], told: str):
    rows = spark.createDataFrame([(BEGIN, 1)], "at double, key int")
    with pytest.raises(StepFault, match=told):
        check_source_rows(rows.selectExpr(*columns), "ts")
    fine = rows.selectExpr("timestamp_seconds(at) TS")
    assert check_source_rows(fine, "ts") is fine
