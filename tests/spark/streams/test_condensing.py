"""What Spark says of a batch's windows: which rows differ, whatever their types and their order."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.streams.condensing import condense_windows
from airflow_dagsched.spark.streams.draft_writer import DraftWriter, Layout, RowWindows
from airflow_dagsched.spark.streams.output_window import OutputWindow, Part
from airflow_dagsched.switch.comparing.flow_comparison import compare_windows
from airflow_dagsched.switch.comparing.summary import Summaries, Summary, list_unlike_sums

pytestmark = pytest.mark.spark
LENGTH = 10.0
SECONDS = (-20.0, -3.5, 0.0, 0.000001, 9.999999, 10.0, 14.0, 20.0)
TYPES = "at timestamp, user string, few tinyint, many bigint, price decimal(38,2), share double, tags map<string,int>"
LARGE = 2**63 - 1
ROWS = (
    (5.0, "anna", 1, LARGE, "1.10", 0.1, {"a": 1}),
    (5.0, "bert", 2, LARGE, "2.20", 0.2, {"a": 2}),
    (15.0, "anna", 3, 7, "3.30", 0.4, None),
)


@pytest.mark.parametrize(("part", "length_s"), [("time", 0.0), ("start", 4.0), ("end", 0.0), ("window", 4.0)])
def test_windows_are_those_of_batches(spark: SparkSession, part: Part, length_s: float):
    """To the microsecond, also before 1970."""
    column = OutputWindow("at", part, length_s)
    inner = f"named_struct('start', {{0}} - interval {length_s} seconds, 'end', {{0}})" if part == "window" else "{0}"
    moments = spark.createDataFrame([(round(each * 1e6),) for each in SECONDS], "micros bigint")
    found = condense_windows(moments.selectExpr(f"{inner.format('timestamp_micros(micros)')} as at"), column, LENGTH)
    expected: defaultdict[float, int] = defaultdict(int)
    for each in SECONDS:
        expected[column.find_flow_window(each, LENGTH)] += 1
    assert {end: each.rows for end, each in found.items()} == expected


def condense(spark: SparkSession, *rows: tuple[object, ...]) -> Summaries:
    made = [(datetime.fromtimestamp(float(str(at)), UTC), *rest) for at, *rest in rows]
    frame = spark.createDataFrame(made, TYPES.replace("decimal(38,2)", "string"))
    typed = frame.withColumn("price", frame.price.cast("decimal(38,2)"))
    return condense_windows(typed, OutputWindow("at", "time"), LENGTH)


def test_equal_rows_in_another_order_are_the_same(spark: SparkSession):
    """Sums larger than their columns' type has room for are no error."""
    found = condense(spark, *ROWS)
    assert {end: each.sums["many"] for end, each in found.items()} == {10.0: str(2 * LARGE), 20.0: "7"}
    assert compare_windows(found, condense(spark, *reversed(ROWS)), 0.0, 20.0) == (2, ())


@pytest.mark.parametrize(
    ("at", "value", "sums"),
    [(1, "otto", ()), (2, 5, ("few",)), (4, "9.99", ("price",)), (5, 7.5, ("share",)), (4, None, ("price",))],
)
def test_a_value_that_differs_is_found(spark: SparkSession, at: int, value: object, sums: tuple[str, ...]):
    changed = (*ROWS[1][:at], value, *ROWS[1][at + 1 :])
    (found,) = compare_windows(condense(spark, *ROWS), condense(spark, ROWS[0], changed, ROWS[2]), 0.0, 20.0)[1]
    assert (found.window, list_unlike_sums(found.old, found.new)) == (10.0, sums)


def test_values_that_changed_places_are_found(spark: SparkSession):
    """All sums are the same then."""
    swapped = ((*ROWS[0][:2], *ROWS[1][2:]), (*ROWS[1][:2], *ROWS[0][2:]), ROWS[2])
    (found,) = compare_windows(condense(spark, *ROWS), condense(spark, *swapped), 0.0, 20.0)[1]
    assert (found.window, list_unlike_sums(found.old, found.new)) == (10.0, ())


def test_a_draft_is_read_again(spark: SparkSession, tmp_path: Path):
    """Rows without a window are not in it, columns that are folders are."""
    windows = RowWindows(OutputWindow("end", "end"), LENGTH)
    writer = DraftWriter(spark, LocalStore(), Layout(partition_by=("day",)), windows)
    ends = (datetime.fromtimestamp(10, UTC), datetime.fromtimestamp(10, UTC), None)
    rows = spark.createDataFrame([Row(end=end, day=day) for day, end in enumerate(ends)], "end timestamp, day int")
    (found,) = writer.condense(writer.write(rows, str(tmp_path / "draft"))).items()
    assert found == (10.0, Summary(2, {"day": "1"}, found[1].digest))
    assert found[1].digest != "0"
