"""Which columns a plan uses, and that it says the same over those alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.spark.session.plan_columns import KeptColumns, Use, find_use, select_use, unite_uses
from airflow_dagsched.spark.session.sessions import plan_anew
from tests.spark.readers import collect, make_rows, read, readers

MARK = "wide__0"
SHARED = ("true", "even", "few > 1", "text in ('1', '2')", "maybe is null or not even", "price < 5 and word = 'x'")
"""What all readers may ask of a row."""


def used(df: DataFrame, marked: DataFrame) -> set[str] | None:
    found = find_use(df, marked, MARK)
    return None if found is None else {marked.columns[at] for at in found.columns}


def conditions(df: DataFrame, marked: DataFrame) -> set[str]:
    """What all rows fulfil that ``df`` looks at, beside that there is something; columns are positions."""
    found = find_use(df, marked, MARK)
    assert found is not None
    texts = {re.sub(r"input\[(\d+)[^]]*\]", r"#\1", str(each)) for each in (found.conditions or {}).values()}
    return {text for text in texts if not text.startswith("isnotnull")}


@pytest.fixture
def wide(spark: SparkSession) -> DataFrame:
    return make_rows(spark, 12, 1).alias(MARK)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("select few, count(*) from wide group by few", {"few"}),
        ("select count(*) from wide where maybe > 3", {"maybe"}),
        ("select count(id) from wide", set()),
        ("select pair.x from wide", {"pair"}),
        ("select id from wide where few in (select maybe from wide where even)", {"id", "few", "maybe", "even"}),
        ("with q as (select id, few, text from wide) select a.id from q a join q b on a.few = b.id", {"id", "few"}),
        ("select id from wide union all select few from wide", {"id", "few"}),
        ("select id from (select *, rank() over (partition by few order by price) r from wide) where r < 3",
         {"id", "few", "price"}),
        # Tomorrow the same plan takes the other one.
        ("select case when current_date() = date'2020-02-02' then few else maybe end from wide", {"few", "maybe"}),
        ("select case when current_timestamp() < timestamp'2020-02-02' then few else maybe end, now() from wide",
         {"few", "maybe"}),
        ("select if((select max(unix_timestamp()) from range(2)) = 7, few, maybe) from wide", {"few", "maybe"}),
        ("with d as (select current_timestamp() t) select if(year(t) = 2020, few, maybe) from wide, d",
         {"few", "maybe"}),
        ("select few, now() from wide", {"few"}),
    ],
)  # fmt: skip
def test_what_sql_uses(spark: SparkSession, wide: DataFrame, text: str, columns: set[str]) -> None:
    wide.createOrReplaceTempView("wide")
    assert used(spark.sql(text), wide) == columns


def test_who_takes_rows_whole_uses_all(wide: DataFrame) -> None:
    """A function of the author's gets what it is handed, whatever it looks at."""
    everything = {*wide.columns} - {"lookup"}
    assert used(wide.drop("lookup").mapInPandas(lambda frames: frames, "id long"), wide) == everything
    assert used(wide, wide) == {*wide.columns}


def test_dates_of_two_zones_are_two(spark: SparkSession, wide: DataFrame) -> None:
    text = "if(date(from_utc_timestamp(now(), 'Asia/Tokyo')) = current_date(), few, maybe)"
    assert used(wide.selectExpr(text), wide) == {"few", "maybe"}
    assert used(wide.selectExpr("if(current_date() = curdate(), few, maybe)"), wide) == {"few"}


def test_a_time_inside_the_dataset_is_none_of_its_readers(spark: SparkSession) -> None:
    marked = spark.range(3).selectExpr("id", "id > 1 as more", "now() as loaded").alias(MARK)
    taken = marked.where("more").select("id")
    assert used(taken, marked) == {"id", "more"}
    assert conditions(taken, marked) == {"#1"}


def test_another_plan_below_the_mark_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """Who asks for a hidden column of a file changes what is below: then nothing is known."""
    spark.range(3).withColumn("b", sf.col("id")).write.parquet(str(tmp_path / "t"))
    marked = spark.read.parquet(str(tmp_path / "t")).alias(MARK)
    assert used(marked.select("b"), marked) == {"b"}
    assert used(marked.select("b", "_metadata.file_name"), marked) is None


def test_columns_of_one_name_are_told_apart(spark: SparkSession) -> None:
    """A join without a choice has some names twice."""
    one = spark.range(4).selectExpr("id", "id + 1 as x")
    marked = one.join(one.withColumnRenamed("x", "y"), "id").select("x", "id", "y", sf.col("y").alias("x")).alias(MARK)
    taken = marked.toDF("a", "b", "c", "d").select("d")
    found = find_use(taken, marked, MARK)
    assert found is not None
    assert found.columns == {3}
    assert collect(over_kept(taken, marked, found)) == collect(taken)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("select id from wide where even", {"#11"}),
        ("select id from wide where few > 2 and text = 'x'", {"(#1 > 2)", "(#3 = x)"}),
        # Of the second only the rows that the first lets through are asked: it may fail of others.
        ("select id from wide where few <> 0 and 1 / few < 2", {"NOT (#1 = 0)"}),
        # Each of the two takes other rows.
        ("select id from wide where few = 1 union all select id from wide where few = 2", set()),
        ("select a.id from wide a join wide b on a.id = b.few where b.few < 3", set()),
        # A row's number is another one, if others were let out before.
        ("select id, n from (select *, monotonically_increasing_id() n from wide) where few = 1", set()),
        ("select id from wide where rand(7) < 0.5 and few = 1", set()),
        ("select id from (select * from wide limit 3) where few = 1", set()),
        ("select count(*) from wide", set()),
    ],
)  # fmt: skip
def test_what_is_asked_of_all_rows(spark: SparkSession, wide: DataFrame, text: str, asked: set[str]) -> None:
    wide.createOrReplaceTempView("wide")
    assert conditions(spark.sql(text), wide) == asked


def over_kept(df: DataFrame, marked: DataFrame, use: Use) -> DataFrame:
    """``df`` over what is used, persisted; Spark finds it by its plan afterwards."""
    kept = select_use(marked, use).persist()
    try:
        return KeptColumns(kept, use, plan_anew(kept, kept.sparkSession).withCachedData()).read(df, MARK)
    finally:
        # What was found is in the plan.
        kept.unpersist()


def test_a_hint_for_joins_is_kept_with_the_rows(spark: SparkSession) -> None:
    """Spark puts it above what it has of the dataset."""
    marked = spark.range(9).selectExpr("id as a", "id as b", "id as c").hint("broadcast").alias(MARK)
    df = spark.range(9).join(marked, sf.col("id") == sf.col("b")).select("id", "b")
    use = find_use(df, marked, MARK)
    assert use is not None
    assert use.columns == {1}
    over = over_kept(df, marked, use)
    assert "rightHint=(strategy=broadcast)" in over._jdf.queryExecution().optimizedPlan().toString()
    assert sorted(over.collect()) == [(at, at) for at in range(9)]


def test_a_reader_of_what_is_kept_no_more_computes_it(spark: SparkSession) -> None:
    """Spark's cache was cleared while the rows were made; what is kept of their parts is not taken for them."""
    part = spark.range(9).selectExpr("id as a", "id + 1 as b").persist()
    part.count()
    marked = part.selectExpr("a", "b", "a + b as c").alias(MARK)
    df, use = marked.select("b"), Use(frozenset({1}))
    gone = select_use(marked, use)
    assert KeptColumns(gone, use, plan_anew(gone, spark).withCachedData()).read(df, MARK) is df
    part.unpersist()


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(readers, min_size=1, max_size=3), st.integers(0, 99), st.sampled_from(SHARED))
def test_readers_say_the_same_over_what_they_take(
    spark: SparkSession, drawn: list[Any], seed: int, shared: str
) -> None:
    """Random readers of random rows, in SQL, DataFrames, Python and pandas; all of them may ask the same first."""
    marked = make_rows(spark, 12, seed).alias(MARK)
    frames = [read(marked.where(shared), reader) for reader in drawn]
    found = [find_use(df, marked, MARK) for df in frames]
    known = [(df, each) for df, each in zip(frames, found, strict=True) if each is not None]
    together = unite_uses(each for _, each in known)
    assert together is not None
    for df, _ in known:
        got = over_kept(df, marked, together)
        assert got.schema == df.schema
        assert collect(got) == collect(df)
