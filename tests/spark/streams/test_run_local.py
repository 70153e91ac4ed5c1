"""``flow.run_local`` of a stream: ordinary rows in, what the stream gives in the end out."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import sum as add_up
from pyspark.sql.functions import window

from airflow_dagsched import SparkDataflow, Table

PAGE = Path(__file__).parents[3] / "docs" / "streaming.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
SCHEMA = "ts timestamp, user string, amount decimal(12,2)"
BEGIN = datetime(2024, 5, 1, 12, tzinfo=UTC)


@task.spark_stream_source(format="parquet", path="/data/clicks", schema=SCHEMA, event_time="ts")
def clicks(rows):
    return rows.where("amount > 0")


@task.spark_step(stateful=True, parallelism=2)
def by_user(clicks):
    return clicks.groupBy(window("ts", "10 minutes"), "user").agg(add_up("amount").alias("amount"))


@task.spark_step(writes=Table("/data/by_user", mode="append"))
def out(by_user):
    return by_user.selectExpr("window.end as end", "user", "amount")


@task.spark_stream_sink
def push(by_user, key, label):
    return [label, key, by_user.count()]


def make_flow() -> SparkDataflow:
    with (
        DAG("clicks", schedule=None),
        SparkDataflow("f", mode="streaming", window="10 minutes", lateness="5 minutes", trigger="1 second") as flow,
    ):
        rows = by_user(clicks())
        out(rows)
        push(rows, label="{{ run_id }}")
    return flow


def make_row(minutes: float | None, user: str, amount: str) -> dict[str, Any]:
    moment = None if minutes is None else BEGIN + timedelta(minutes=minutes)
    return {"ts": moment, "user": user, "amount": Decimal(amount)}


def read_table(rows: DataFrame) -> set[tuple[Any, ...]]:
    return {(row.end, row.user, row.amount) for row in rows.collect()}


ROWS = [
    make_row(1, "a", "1.50"), make_row(3, "a", "2.00"), make_row(2, "b", "5.00"), make_row(4, "b", "-1.00"),
    make_row(12, "a", "7.25"), make_row(9, "b", "1.00"), make_row(31, "b", "3.00"),
]  # fmt: skip


@pytest.mark.spark
def test_it_gives_what_the_stream_gives_in_the_end(spark: SparkSession, tmp_path: Path) -> None:
    """Of the windows that the last row has closed: the others are there, too, as they are so far."""
    found = make_flow().run_local(inputs={"clicks": ROWS}, spark=spark)
    table = read_table(found["out"])
    streamed = run_stream(spark, tmp_path)
    assert len(streamed) == 3
    assert streamed == {row for row in table if row[0] <= max(end for end, _, _ in streamed)}
    assert len(table - streamed) == 1
    assert found["push"] == ["local", "local/f/push", 4]


def run_stream(spark: SparkSession, folder: Path) -> set[tuple[Any, ...]]:
    """The same steps, as Spark itself streams them: in three batches, so that the watermark moves on."""
    (folder / "in").mkdir()
    for at, rows in enumerate((ROWS[:4], ROWS[4:6], ROWS[6:])):
        file = folder / "in" / f"{at}.json"
        file.write_text("\n".join(json.dumps(row, default=str) for row in rows))
        os.utime(file, (at, at))
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    table = out.function(by_user.function(clicks.function(source).withWatermark("ts", "5 minutes")))
    seen: set[tuple[Any, ...]] = set()
    query = (
        table.writeStream.foreachBatch(lambda df, _: seen.update(read_table(df)))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return seen


@pytest.mark.spark
def test_rows_without_a_time_or_far_ahead_are_left_out(spark: SparkSession) -> None:
    """As the stream does: the one would be in no window, the other would close all of them."""
    far = (datetime.now(UTC) - BEGIN) / timedelta(minutes=1) + 2 * 24 * 60
    rows = spark.createDataFrame([*ROWS, make_row(None, "a", "1"), make_row(far, "a", "1")], SCHEMA)
    found = make_flow().run_local(inputs={"clicks": rows}, spark=spark)
    assert {row.amount for row in found["out"].collect()} == {Decimal(each) for each in ("3.50", "6.00", "7.25", "3")}


@pytest.mark.spark
def test_a_step_may_be_given_its_answer(spark: SparkSession) -> None:
    rows = spark.sql("select named_struct('end', now()) as window, 'x' as user, 1.0 as amount")
    found = make_flow().run_local(inputs={"clicks": [], "by_user": rows}, spark=spark)
    assert [row.user for row in found["out"].collect()] == ["x"]


@pytest.mark.spark
def test_the_unit_test_of_the_page(spark: SparkSession) -> None:
    names: dict[str, Any] = {"Decimal": Decimal, "UTC": UTC, "datetime": datetime, "timedelta": timedelta}
    example, _, unit_test, *_ = BLOCKS
    exec(example, names)
    exec(unit_test, names)
    names["test_by_user"](spark)


def test_a_source_needs_rows() -> None:
    with pytest.raises(KeyError, match=r"source 'clicks' is not read here: give its rows in inputs=\{'clicks': ...\}"):
        make_flow().run_local()
