"""Plans as Spark itself makes them, with Python's functions and with SQL. No query is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.spark.streams.output_window import OutputWindow
from airflow_dagsched.spark.streams.plan_check import check_query
from airflow_dagsched.spark.streams.plans.judge import JudgedQuery

FLOW_S = 600
REACH_S = 900
TOTAL = "window struct<start: timestamp, end: timestamp>, user string, total double"


class Total(StatefulProcessor):
    """Never called: the plan alone is looked at."""

    def init(self, handle: Any) -> None: ...

    def handleInputRows(self, *_: Any) -> Iterator[Any]:  # noqa: N802 - Spark's name
        yield from ()

    def close(self) -> None: ...


class Sources:
    """What a step has to begin with."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.clicks = self.open(folder / "clicks", "amount")
        self.views = self.open(folder / "views", "shown")
        self.names = spark.createDataFrame([("a", "Ada")], "user string, name string")
        self.clicks.createOrReplaceTempView("clicks")
        self.names.createOrReplaceTempView("names")

    def open(self, folder: Path, value: str) -> DataFrame:
        """A source as the flow opens it: its watermark, and what is observed above that."""
        folder.mkdir()
        rows = self.spark.readStream.schema(f"ts timestamp, user string, {value} double").parquet(str(folder))
        return rows.withWatermark("ts", "5 minutes").observe(f"dagsched_{folder.name}", sf.max("ts"), sf.count("*"))


@pytest.fixture(scope="module")
def sources(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(spark.newSession(), tmp_path_factory.mktemp("sources"))


def count(rows: DataFrame, *window: str) -> DataFrame:
    return rows.groupBy(sf.window("ts", *window), "user").agg(sf.count("*").alias("rows"))


def carry_total(rows: DataFrame, **more: Any) -> DataFrame:
    return rows.groupBy("user").transformWithState(Total(), TOTAL, "Append", "EventTime", **more)


WINDOW, TIME = OutputWindow("window", "window"), OutputWindow("ts", "time")
TAKEN: dict[str, tuple[Callable[[Sources], DataFrame], JudgedQuery]] = {
    "tumbling": (lambda s: count(s.clicks, "10 minutes"), JudgedQuery(WINDOW)),
    "tumbling, shorter": (lambda s: count(s.clicks, "2 minutes"), JudgedQuery(WINDOW)),
    "sliding": (lambda s: count(s.clicks, "20 minutes", "5 minutes"), JudgedQuery(WINDOW, reach_s=900)),
    "the end of it": (
        lambda s: count(s.clicks, "5 minutes").select(sf.col("window.end").alias("until"), "rows"),
        JudgedQuery(OutputWindow("until", "end")),
    ),
    "the start of it": (
        lambda s: count(s.clicks, "5 minutes").select("window.start", "rows"),
        JudgedQuery(OutputWindow("start", "start", 300)),
    ),
    "window of windows": (
        lambda s: (
            count(s.clicks, "2 minutes", "1 minute").groupBy(sf.window("window", "10 minutes")).agg(sf.sum("rows"))
        ),
        JudgedQuery(WINDOW, reach_s=60),
    ),
    "its last moment": (
        lambda s: count(s.clicks, "10 minutes").select(sf.window_time("window").alias("at"), "rows"),
        JudgedQuery(OutputWindow("at", "time")),
    ),
    "rows as they are": (
        lambda s: s.clicks.where("amount > 1").withColumnRenamed("ts", "at"),
        JudgedQuery(OutputWindow("at", "time")),
    ),
    "SQL": (
        lambda s: s.spark.sql(
            "WITH some AS (SELECT * FROM clicks WHERE amount > 1) SELECT window(ts, '10 minutes', '5 minutes') AS w, "
            "name, sum(amount) FROM some JOIN names USING (user) GROUP BY ALL"
        ),
        JudgedQuery(OutputWindow("w", "window"), reach_s=300),
    ),
    "once an event time": (lambda s: s.clicks.dropDuplicates(["user", "ts"]), JudgedQuery(TIME)),
    "once a window": (
        lambda s: s.clicks.withColumn("window", sf.window("ts", "10 minutes")).dropDuplicates(["user", "window"]),
        JudgedQuery(WINDOW),
    ),
    "two streams by window": (
        lambda s: count(s.clicks, "10 minutes").join(
            count(s.views, "10 minutes").withColumnRenamed("rows", "shown"), ["window", "user"], "left"
        ),
        JudgedQuery(WINDOW),
    ),
    "two streams by time": (lambda s: s.clicks.join(s.views, ["ts", "user"]), JudgedQuery(TIME)),
    "one stream of two": (lambda s: s.clicks.union(s.views), JudgedQuery(TIME)),
    "more of one row": (
        lambda s: s.clicks.select("ts", sf.explode(sf.split("user", " ")).alias("word")),
        JudgedQuery(TIME),
    ),
}
REFUSED: dict[str, tuple[Callable[[Sources], DataFrame], str]] = {
    "all of time": (lambda s: s.clicks.groupBy("user").count(), "groups by 'user' without a window"),
    "one total": (lambda s: s.clicks.agg(sf.sum("amount")), "groups by no column without a window"),
    "another time": (
        lambda s: s.clicks.groupBy(sf.window(sf.col("ts") + sf.expr("INTERVAL 1 HOUR"), "10 minutes")).count(),
        "groups by windows of 'an expression', which is not the event time",
    ),
    "sessions": (
        lambda s: s.clicks.groupBy(sf.session_window("ts", "10 minutes"), "user").count(),
        "sessions are no windows",
    ),
    "once and for all": (lambda s: s.clicks.dropDuplicates(["user"]), "looks for duplicates by 'user'"),
    "all of SQL": (lambda s: s.spark.sql("SELECT DISTINCT user FROM clicks"), "looks for duplicates by 'user'"),
    "within the watermark": (
        lambda s: s.clicks.dropDuplicatesWithinWatermark(["user"]),
        "dropDuplicatesWithinWatermark remembers across windows",
    ),
    "two streams": (lambda s: s.clicks.join(s.views, "user"), "joins two streams on 'user'"),
    "two streams, nearby": (
        lambda s: s.clicks.join(
            s.views.withColumnRenamed("ts", "at"), sf.expr("ts BETWEEN at AND at + INTERVAL 5 MINUTES")
        ),
        "joins two streams on no column",
    ),
    "state": (lambda s: carry_total(s.clicks), "transformWithState keeps what it likes: declare carries="),
    "groups": (
        lambda s: s.clicks.groupBy("user").applyInPandas(lambda rows: rows, s.clicks.schema),
        "applyInPandas sees a group's rows of one batch alone",
    ),
    "a few": (lambda s: s.clicks.limit(3), "takes so many rows of a stream"),
    "in order": (lambda s: s.clicks.sort("ts"), "orders the rows of a stream"),
    "a watermark": (
        lambda s: count(s.clicks.withWatermark("ts", "1 minute"), "10 minutes"),
        "has a watermark of its own on 'ts'",
    ),
    "a stream": (lambda s: s.spark.readStream.format("rate").load(), "reads a stream that the flow does not know"),
    "a later start": (
        lambda s: count(s.clicks, "10 minutes", "10 minutes", "1 minute"),
        "windows of 10 minutes of 'ts' start 1 minute after the flow's",
    ),
    "longer ones": (
        lambda s: s.spark.sql("SELECT window(ts, '1 hour') AS w, count(*) FROM clicks GROUP BY 1"),
        "windows of 1 hour of 'ts' do not divide the flow's of 10 minutes",
    ),
    "another slide": (
        lambda s: count(s.clicks, "10 minutes", "4 minutes"),
        "windows of 10 minutes of 'ts' slide by 4 minutes",
    ),
    "no window": (
        lambda s: count(s.clicks, "10 minutes").select("user", "rows"),
        "writes rows that have neither a window nor the event time (of 'user', 'rows')",
    ),
    "a function's rows": (
        lambda s: s.clicks.mapInPandas(lambda parts: parts, s.clicks.schema),
        "writes rows that have neither a window nor the event time",
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_query_is_taken_as_what_it_is(sources: Sources, name: str) -> None:
    build, judged = TAKEN[name]
    assert check_query({"out": build(sources)}, FLOW_S, REACH_S) == judged


@pytest.mark.parametrize("name", REFUSED)
def test_a_query_is_refused_in_one_line_that_names_the_step(sources: Sources, name: str) -> None:
    build, told = REFUSED[name]
    with pytest.raises(InvalidInput) as refused:
        check_query({"out": build(sources)}, FLOW_S, REACH_S)
    assert f"step 'out': {told}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_state_that_is_carried_on_says_itself_which_window_a_row_is_of(sources: Sources) -> None:
    before = sources.names.groupBy("user")
    for more in ({}, {"initialState": before}):
        assert check_query({"out": carry_total(sources.clicks, **more)}, FLOW_S, REACH_S, carries=True) == JudgedQuery(
            WINDOW
        )


def test_a_step_is_named_where_it_went_wrong(sources: Sources) -> None:
    totals = sources.clicks.groupBy("user").count()
    with pytest.raises(InvalidInput, match="query 'out': step 'totals': groups by 'user'"):
        check_query({"clicks": sources.clicks, "totals": totals, "out": totals.where("count > 1")}, FLOW_S, REACH_S)
