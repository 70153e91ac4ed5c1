"""Real streams, run to their ends, do what was judged of them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.spark.streams.plan_check import check_query
from airflow_dagsched.spark.streams.plans.judge import JudgedQuery

FLOW_S = 60
ROWS = [(second * 7, f"user {second % 2}") for second in range(100)]
"""Second of the event time, and who: 700 seconds of them."""
FILES = 2
PARTS = {"window": "window", "start": "window.start", "end": "window.end"}


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of rows, older ones in older files."""
    folder = tmp_path_factory.mktemp("rows")
    for number in range(FILES):
        path = folder / f"{number}.json"
        some = ROWS[number * len(ROWS) // FILES : (number + 1) * len(ROWS) // FILES]
        path.write_text("".join(f'{{"at": {at}, "user": "{user}"}}\n' for at, user in some))
        os.utime(path, (1_000 + number, 1_000 + number))
    return folder


def open_rows(spark: SparkSession, folder: Path, since: float) -> DataFrame:
    reader = spark.readStream.schema("at long, user string").option("maxFilesPerTrigger", 1)
    rows = reader.json(str(folder)).select(sf.timestamp_seconds("at").alias("ts"), "user")
    later = rows.where(sf.col("ts") >= sf.lit(datetime.fromtimestamp(since, UTC)))
    return later.withWatermark("ts", "0 seconds").observe("dagsched_rows", sf.max("ts"))


def run(rows: DataFrame, judged: JudgedQuery, checkpoint: Path) -> list[list[Row]]:
    """The query's batches, each row with its ``moment`` in microseconds."""
    return collect(rows.select("*", sf.unix_micros(sf.expr(judged.output.path)).alias("moment")), checkpoint)


def collect(rows: DataFrame, checkpoint: Path) -> list[list[Row]]:
    """The query's batches, until there are no more files."""
    batches: list[list[Row]] = []
    query = (
        rows.writeStream.foreachBatch(lambda batch, _: batches.append(batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batches


def find_windows(batch: list[Row], judged: JudgedQuery) -> list[float]:
    return [judged.output.find_flow_window(row["moment"] / 1e6, FLOW_S) for row in batch]


def nest(rows: DataFrame) -> DataFrame:
    inner = rows.groupBy(sf.window("ts", "30 seconds", "10 seconds"), "user").count()
    return inner.groupBy(sf.window("window", "60 seconds", "20 seconds")).agg(sf.sum("count").alias("count"))


@pytest.mark.slow
def test_a_graph_that_starts_as_far_back_as_judged_has_all_of_what_follows(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    """And one that starts a slide later has not: the reach is no longer than it has to be."""
    judged = check_query({"out": nest(open_rows(spark, folder, 0))}, FLOW_S, reach_s=60)
    boundary = 5 * FLOW_S
    found = {}
    for since in (0, boundary - judged.reach_s, boundary - judged.reach_s + 20):
        batches = run(nest(open_rows(spark, folder, since)), judged, tmp_path / str(since))
        found[since] = sorted(
            row
            for batch in batches
            for row, window in zip(batch, find_windows(batch, judged), strict=True)
            if window > boundary
        )
    whole, enough, less = found.values()
    assert whole
    assert enough == whole
    assert less != whole


def test_windows_of_batches_are_as_told(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """By each of the columns that may tell them: a batch emits what its watermark has ended, and nothing is missing."""
    counted = open_rows(spark, folder, 0).groupBy(sf.window("ts", "30 seconds")).count()
    parts = {name: counted.select(sf.col(path).alias(name), "count") for name, path in PARTS.items()}
    judged = {name: check_query({"out": rows}, FLOW_S, reach_s=60) for name, rows in parts.items()}
    moments = [
        sf.unix_micros(sf.expr(each.output.path.replace(f"`{name}`", PARTS[name]))).alias(name)
        for name, each in judged.items()
    ]
    batches = [batch for batch in collect(counted.select(*moments), tmp_path) if batch]
    told = [
        [each.output.find_flow_window(row[name] / 1e6, FLOW_S) for row in batch]
        for batch in batches
        for name, each in judged.items()
    ]
    # Rows go up to second 693: the last window of theirs that can end is the one until 690, of the flow's until 720.
    assert told[::3] == told[1::3] == told[2::3]
    assert {window for batch in told for window in batch} == {60.0 * number for number in range(1, 13)}
    assert len(batches) > 1
    assert max(told[0]) <= min(told[-1])
