"""Rows are split by Spark as the rule says, counted as they are written, and read by the graph that has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.session.sessions import open_session
from airflow_dagsched.spark.streams.inbox.inbox_reader import open_inbox, write_schema
from airflow_dagsched.spark.streams.inbox.inbox_writer import WRITING, InboxWriter
from airflow_dagsched.spark.streams.inbox.place_rows import Counts, count_whole, list_spans
from airflow_dagsched.spark.streams.sources import SETTINGS as SETTINGS_OF_STREAMS
from airflow_dagsched.switch.inbox.routing import Route
from airflow_dagsched.switch.places import InboxPlaces
from airflow_dagsched.switch.records import Epoch
from tests.switch.drawn import make_epoch

pytestmark = pytest.mark.spark

SCHEMA = StructType([StructField("ts", TimestampType()), StructField("name", StringType())])
ROUTE = Route(last=3, before=(40.0, 2), dead_before=20.0)
SPEC = SourceSpec("clicks", "parquet", "ts")
SETTINGS = StreamSettings(10.0, 5.0, 1.0, channel="inbox")


@pytest.fixture
def places(spark: SparkSession, tmp_path: Path) -> InboxPlaces:
    """An inbox with one batch, which is all that a draft needs to be one."""
    now = datetime.now(tz=UTC)
    moments = {name: datetime.fromtimestamp(int(name), tz=UTC) for name in ("12", "19", "20", "39", "40", "95")}
    rows = [*((at, name) for name, at in moments.items()), (None, "none"), (now + timedelta(days=2), "ahead")]
    session = open_session(spark, WRITING)
    df = session.createDataFrame(rows, SCHEMA)
    counts = InboxWriter(session, LocalStore(), "ts", 86_400.0).write(df, str(tmp_path / "draft"), ROUTE, 15.0)
    assert (counts.newest, counts.rows) == (95.0, {"2": 2, "3": 2})
    assert counts.dead == {"no time": 1, "ahead": 1, "late": 1, "passed": 1}
    found = InboxPlaces(tmp_path / "draft" / "new")
    write_schema(found, df.schema)
    return found


def read(spark: SparkSession, places: InboxPlaces, record: Epoch) -> list[str]:
    session = open_session(spark, SETTINGS_OF_STREAMS)
    rows = open_inbox(session, SPEC, SETTINGS, places, record)
    name = f"inbox_{record.epoch}_{record.x_after}_{record.x_rows_from or 0:.0f}"
    query = rows.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(row["name"] for row in session.table(name).collect())


def test_each_graph_gets_its_rows(spark: SparkSession, places: InboxPlaces):
    assert read(spark, places, make_epoch(2)) == ["20", "39"]
    assert read(spark, places, make_epoch(3)) == ["40", "95"]


def test_behind_a_graph_that_runs_no_more_the_new_one_gets_what_is_open(spark: SparkSession, places: InboxPlaces):
    assert read(spark, places, make_epoch(3, x_rows_from=30.0)) == ["39", "40", "95"]


def test_the_first_graph_gets_what_was_routed_to_those_that_were_given_up(spark: SparkSession, places: InboxPlaces):
    assert read(spark, places, make_epoch(3, x_after=0)) == ["20", "39", "40", "95"]


def test_what_no_graph_takes_is_kept_with_the_reason(spark: SparkSession, places: InboxPlaces):
    dead = spark.read.parquet(str(places.folder / "dead")).collect()
    assert {row["name"]: row["dagsched_why"] for row in dead} == {
        "none": "no time", "ahead": "ahead", "12": "late", "19": "passed",
    }  # fmt: skip


def test_rows_of_one_graph_are_divided_from_the_first_on_that_none_takes(spark: SparkSession, tmp_path: Path):
    writer = InboxWriter(open_session(spark, WRITING), LocalStore(), "ts", 86_400.0)

    def write(folder: str, *moments: int) -> tuple[Counts, list[str], bool]:
        rows = spark.createDataFrame([(datetime.fromtimestamp(at, tz=UTC), str(at)) for at in moments], SCHEMA)
        draft = tmp_path / folder
        counts = writer.write(rows.coalesce(1), str(draft), Route(3), 15.0)
        [file] = (draft / "new" / "rows").glob("*/*.parquet")
        assert file.parent.name == "dagsched_epoch=3"
        columns = spark.read.parquet(str(file)).columns
        return counts, columns, (draft / "new" / "dead").exists()

    assert write("whole", 20, 90) == (Counts(90.0, {"3": 2}, {}), ["ts", "name"], False)
    assert write("late", 14, 30) == (Counts(30.0, {"3": 1}, {"late": 1}), ["ts", "name", "dagsched_why"], True)
    assert write("divided", 40) == (Counts(40.0, {"3": 1}, {}), ["ts", "name", "dagsched_why"], False)


def test_rows_are_whole_where_the_oldest_and_the_newest_are_the_graph_s():
    spans = list_spans(Route(3, dead_before=20.0), 30.0, 60.0)

    def count(oldest: float, newest: float, untimed: int = 0) -> Counts | None:
        times = {"oldest": round(oldest * 1e6), "newest": round(newest * 1e6)}
        return count_whole({**times, "timed": 4, "rows": 4 + untimed}, 3, spans)

    assert count(30.0, 60.0) == Counts(60.0, {"3": 4}, {})
    assert [count(29.999999, 60.0), count(30.0, 60.000001), count(30.0, 60.0, untimed=1)] == [None] * 3
    nothing = {"oldest": None, "newest": None, "timed": 0, "rows": 0}
    assert count_whole(nothing, 3, spans) == Counts(None, {"3": 0}, {})
    assert count_whole({**nothing, "rows": 1}, 3, spans) is None


def test_the_first_reason_that_holds_is_the_row_s():
    route, latest = Route(last=3, before=(40.0, 2), dead_before=20.0), 60.0
    spans = [(each.begin, each.epoch, each.why) for each in list_spans(route, 30.0, latest)[1:]]
    ahead = (60_000_001, 0, "ahead")
    assert spans == [(20_000_000, 0, "late"), (30_000_000, 2, None), (40_000_000, 3, None), ahead]
    assert [(each.epoch, each.why) for each in list_spans(Route(3), 0.0, latest)] == [(0, "late"), (3, None), ahead[1:]]
    # Everything is too far ahead of a clock that stands before it.
    assert {each.why for each in list_spans(route, 30.0, 10.0)[-3:]} == {"ahead"}


def test_times_come_back_as_they_were(spark: SparkSession, tmp_path: Path):
    """However old, and whatever the flow's session says of such in files."""
    legacy = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}
    legacy["spark.sql.parquet.datetimeRebaseModeInWrite"] = "EXCEPTION"
    session = open_session(spark, {**legacy, **WRITING})
    rows = session.sql("SELECT timestamp '2001-01-01' AS ts, timestamp '0999-02-03 04:05:06.123456' AS born")
    counts = InboxWriter(session, LocalStore(), "ts", 86_400.0).write(rows, str(tmp_path / "draft"), Route(3), 0.0)
    assert counts.rows == {"3": 1}
    [row] = spark.read.parquet(str(tmp_path / "draft" / "new" / "rows")).selectExpr("cast(born AS string)").collect()
    assert row["born"] == "0999-02-03 04:05:06.123456"


def test_no_batch_is_compiled_anew_for_its_times(spark: SparkSession, tmp_path: Path):
    jvm: Any = spark.sparkContext._jvm
    rows = spark.createDataFrame([(datetime.fromtimestamp(50, tz=UTC), "50")], SCHEMA)
    compiled = []
    for batch in range(4):
        writer = InboxWriter(spark, LocalStore(), "ts", 86_400.0)
        writer.write(rows, str(tmp_path / str(batch)), ROUTE, 15.0 + batch)
        compiled.append(jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount())
    assert compiled[1:] == compiled[1:2] * 3
