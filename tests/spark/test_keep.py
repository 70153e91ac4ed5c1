"""What is kept, where, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.spark.session import dataframe_cache
from airflow_dagsched.spark.session.compression import COMPRESSED, GROWTH, UNKNOWN, estimate_size
from airflow_dagsched.spark.session.dataframe_cache import Kept, choose_level, measure_storage_memory
from airflow_dagsched.spark.session.plan_markers import count_marks, is_bare_scan


def test_equal_plans_are_kept_until_both_let_go(spark: SparkSession) -> None:
    """Spark finds cached data by plan: releasing one step's must not take the other's away."""
    kept = Kept(spark.sparkContext)
    one, other = (spark.range(7).where("id > 2") for _ in range(2))
    kept.keep_frame(one)
    kept.keep_frame(other)
    kept.release_frame(one)
    assert other.storageLevel == StorageLevel.MEMORY_AND_DISK_DESER
    kept.release_frame(other)
    assert other.storageLevel == StorageLevel.NONE


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_little_memory_means_disk(free: int, total: int) -> None:
    expected = StorageLevel.DISK_ONLY if free / total < 0.3 else StorageLevel.MEMORY_AND_DISK_DESER
    assert choose_level(free, total) == expected


def test_memory_is_measured(spark: SparkSession) -> None:
    free, total = measure_storage_memory(spark.sparkContext)
    assert 0 < free <= total


def test_marks_count_executions_not_mentions(spark: SparkSession) -> None:
    """A marked dataset in a join with itself and in a subquery of a view; kept, it is executed no more."""
    session = spark.newSession()
    df = session.range(5).withColumn("r", sf.rand()).alias("step__0")
    df.createOrReplaceTempView("v")
    used = session.sql("select * from v a join v b using (id) where a.id < (select max(id) from v)")
    assert count_marks(used, session) == {"step__0": 3}
    df.persist()
    assert count_marks(used, session) == {}
    df.unpersist()


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    where = str(tmp_path_factory.mktemp("scan") / "t")
    spark.range(5).withColumn("b", sf.col("id") * 2).write.parquet(where)
    return where


def test_bare_scans(spark: SparkSession, path: str) -> None:
    """Rows and columns as they are in columnar files; anything computed, called or random is worth keeping."""
    df = spark.read.parquet(path)
    assert all(map(is_bare_scan, [df, df.select("b"), df.where("b > 2").alias("x"), df.selectExpr("b as c")]))
    double = sf.udf(lambda x: x > 2, "boolean")
    others = [df.selectExpr("b + 1"), df.where(double("b")), df.where(sf.rand() > 0.5), df.distinct(), spark.range(3)]
    assert not any(map(is_bare_scan, others))
    assert not is_bare_scan(df.where(f"b > (select max(b) from parquet.`{path}`)"))


def _measure_kept(df: DataFrame) -> int:
    """Bytes in memory of ``df``, kept as a step's rows are."""
    sc = df.sparkSession.sparkContext
    kept = Kept(sc)
    before = {info.id() for info in sc._jsc.sc().getRDDStorageInfo()}
    kept.keep_frame(df)
    df.count()
    (size,) = [info.memSize() for info in sc._jsc.sc().getRDDStorageInfo() if info.id() not in before]
    kept.release_frame(df)
    return int(size)


def test_rows_that_probably_fit_are_not_compressed(spark: SparkSession) -> None:
    """Unless their author says so, or where nobody knows how many there are."""
    words = "cast(id % 3 as string) || ' is a word' as word"
    session, other = spark.newSession(), spark.newSession()
    plain = _measure_kept(session.range(20_000).selectExpr(words))
    assert session.conf.get(COMPRESSED) == "true"
    other.conf.set(COMPRESSED, "true")
    packed = _measure_kept(other.range(20_001).selectExpr(words))
    unknown = _measure_kept(session.createDataFrame(session.range(20_002).rdd, "id long").selectExpr(words))
    assert max(packed, unknown) < plain / 3
    assert other.conf.get(COMPRESSED) == "true"


def test_a_join_is_taken_for_as_large_as_its_files(spark: SparkSession, path: str) -> None:
    df = spark.read.parquet(path)
    files = sum(file.stat().st_size for file in Path(path).iterdir() if file.name.startswith("part-"))
    assert estimate_size(df) == GROWTH * files
    assert estimate_size(df.join(df.withColumnRenamed("b", "c"), "id")) == 2 * GROWTH * files
    named = spark.sql(f"with t as (select * from parquet.`{path}`) select * from t join t u using (id)")
    assert estimate_size(named) == GROWTH * files
    assert estimate_size(spark.createDataFrame(df.rdd, df.schema)) >= UNKNOWN


def test_the_same_memory_is_promised_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """To rows that are not there yet; and to others once they are gone."""
    monkeypatch.setattr(dataframe_cache, "measure_storage_memory", lambda sc: (1000, 1000))
    rooms: list[int] = []
    monkeypatch.setattr(dataframe_cache, "persist_frame", lambda df, level, room: rooms.append(room) or 300)
    kept, frames = Kept(spark.sparkContext), [spark.range(size) for size in (3, 4, 5)]
    for df in frames[:2]:
        kept.keep_frame(df)
    kept.release_frame(frames[0])
    kept.keep_frame(frames[2])
    assert rooms == [700, 400, 400]
