"""The job that fills Spark's cache: what it computes, counts, and raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.spark.session.cache_filling import fill_cache
from airflow_dagsched.spark.session.observed import count_all

pytestmark = pytest.mark.spark


@contextmanager
def persisted(df: DataFrame) -> Iterator[DataFrame]:
    df.persist()
    try:
        yield df
    finally:
        df.unpersist()


def list_stages(spark: SparkSession, group: str, act: Callable[[], object]) -> list[list[str]]:
    """The names of the stages of each job that ``act`` begins, in a ``group`` of its own."""
    sc = spark.sparkContext
    sc.setJobGroup(group, "what is begun here")
    try:
        act()
    finally:
        sc.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    tracker = sc.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [[tracker.getStageInfo(stage) for stage in job.stageIds] for job in jobs if job is not None]
    return [[stage.name for stage in each if stage is not None] for each in stages]


def counted_rows(spark: SparkSession, rows: int, parts: int) -> tuple[DataFrame, object]:
    seen = spark.sparkContext.accumulator(0)

    def see(at: int) -> int:
        seen.add(1)
        return at

    return spark.range(0, rows, 1, parts).select(sf.udf(see, "long")("id").alias("a"), sf.lit("x").alias("b")), seen


@pytest.mark.parametrize(("rows", "parts"), [(0, 1), (0, 3), (7, 1), (1000, 4), (2, 5)])
def test_each_row_is_computed_once_and_counted(spark: SparkSession, rows: int, parts: int) -> None:
    df, seen = counted_rows(spark, rows, parts)
    with persisted(df):
        filled = fill_cache(df)
        assert filled.rows == rows == seen.value  # type: ignore[attr-defined]
        assert (filled.size > 0) == (rows > 0)
        assert df.count() == rows
        again = fill_cache(df)
        assert (again.rows, again.size) == (filled.rows, filled.size)
        assert seen.value == rows  # type: ignore[attr-defined]


def test_after_a_shuffle(spark: SparkSession) -> None:
    with persisted(spark.range(100).groupBy((sf.col("id") % 7).alias("k")).count()) as df:
        assert fill_cache(df).rows == 7


def test_one_job(spark: SparkSession) -> None:
    """Its stage has a name that a person can read, and that of the next job is its own."""
    if spark.version < "4.2":
        pytest.skip("before 4.2 Spark is not sure of the rows that it has kept: a query counts them")
    with persisted(spark.range(0, 50, 1, 3).selectExpr("id * 2 as a")) as df:
        assert list_stages(spark, "filling", lambda: fill_cache(df)) == [["keep"]]
    (names,) = list_stages(spark, "after it", spark.sparkContext.range(3).count)
    assert names != ["keep"]


def test_settings_of_the_session_reach_the_executors(spark: SparkSession) -> None:
    """A time zone is looked at where rows are made."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    # A function that the optimizer can't compute ahead.
    df = session.range(2).select(sf.from_unixtime(sf.col("id") * 0, "HH").alias("hour"))
    with persisted(df):
        fill_cache(df)
        session.conf.set("spark.sql.session.timeZone", "UTC")
        assert {row.hour for row in df.collect()} == {"09"}


def test_rows_below_are_counted_on_the_way(spark: SparkSession) -> None:
    counted = count_all(spark.range(20))
    with persisted(counted.df.where("id > 14")) as df:
        assert fill_cache(df).rows == 5
        assert counted.read() == 20


def test_rows_under_a_hint_for_joins_are_filled(spark: SparkSession) -> None:
    with persisted(spark.range(30).selectExpr("id as a").hint("broadcast")) as df:
        assert fill_cache(df).rows == 30


def test_rows_are_counted_though_the_cache_was_cleared(spark: SparkSession) -> None:
    """What is kept of its parts is not taken for it."""
    with persisted(spark.range(3).selectExpr("id + 5 as a")) as part:
        fill_cache(part)
        assert fill_cache(part.crossJoin(spark.range(4))).rows == 12
        assert fill_cache(part.selectExpr("explode(array(a, a)) as b")).rows == 6


def test_a_failing_function_of_the_author_is_said(spark: SparkSession) -> None:
    def fail(at: int) -> int:
        raise ValueError(f"no {at}")

    df = spark.range(1).select(sf.udf(fail, "long")("id").alias("a"))
    with persisted(df), pytest.raises(PythonException, match="no 0") as filled:
        fill_cache(df)
    with pytest.raises(PythonException) as counted:
        df.collect()
    assert type(filled.value) is type(counted.value)
    assert filled.value.__cause__ is None


def test_sparks_own_failures_are_said_as_those_of_an_action(spark: SparkSession) -> None:
    df = spark.range(1).selectExpr("raise_error('broken row') as a")
    found = []
    for act in (fill_cache, DataFrame.collect):
        with persisted(df), pytest.raises(Exception, match="broken row") as failed:
            act(df)  # type: ignore[operator]
        java = failed.value.java_exception if isinstance(failed.value, Py4JJavaError) else None
        found.append((type(failed.value), java and java.getClass().getName()))
    assert found[0] == found[1]


def test_observations_are_answered(spark: SparkSession) -> None:
    seen = Observation()
    with persisted(spark.range(9).observe(seen, sf.max("id").alias("most"))) as df:
        fill_cache(df)
        assert seen.get == {"most": 8}
