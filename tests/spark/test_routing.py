"""What an author says of the way rows go is what Spark is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark.running import Flow, Ran, run


def show_plan(df: Any) -> None:
    """As it would be executed, a line each; by themselves so few rows would be broadcast in any case."""
    df.sparkSession.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    print(df._jdf.queryExecution().sparkPlan().toString())


def joining(**spec: Any) -> Flow:
    """large and small, joined by a function and by SQL; what Spark makes of that is printed."""
    flow = Flow()

    def large(spark: Any) -> Any:
        return spark.range(0, 1000, 1, 4).selectExpr("id", "uuid() as text")

    def small(spark: Any) -> Any:
        return spark.range(0, 10, 1, 4).selectExpr("id", "uuid() as other")

    def joined(large: Any, small: Any) -> Any:
        found = large.join(small, "id")
        show_plan(found)
        print(f"in {small.rdd.getNumPartitions()}")
        return found

    def seen(by_sql: Any) -> None:
        show_plan(by_sql)

    flow.step(large)
    flow.step(small)
    flow.step(joined, **spec)
    flow.sql("by_sql", "select * from large join small using (id)", "large", "small", **spec)
    flow.step(seen)
    return flow


def ran(spark: SparkSession, folder: Path, **spec: Any) -> Ran:
    found = run(spark, folder, joining(**spec), slots=1)
    assert found.ok
    return found


def test_broadcast_is_a_hint(spark: SparkSession, tmp_path: Path) -> None:
    found = ran(spark, tmp_path, routed={"small/": "broadcast"})
    for step in ("joined", "seen"):
        assert any("BroadcastHashJoin" in line for line in found.lines(step)), found.lines(step)


def test_without_a_word_spark_decides(spark: SparkSession, tmp_path: Path) -> None:
    found = ran(spark, tmp_path)
    for step in ("joined", "seen"):
        assert not any("Broadcast" in line for line in found.lines(step)), found.lines(step)
    assert "in 4" in found.lines("joined")


def test_rows_that_are_kept_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Ten rows of a long (8 bytes) and a text (20, as Spark's optimizer takes them)."""
    assert ran(spark, tmp_path).done["small"].assumed == {"": 280}


def test_what_is_stored_is_measured(spark: SparkSession, tmp_path: Path) -> None:
    flow = Flow()

    def made(spark: Any) -> Any:
        return {"good": spark.range(10), "bad": spark.range(3)}

    flow.step(made, store=("bad", "good"))
    done = run(spark, tmp_path, flow).done["made"]
    assert done.sizes.keys() == {"good", "bad"}
    assert sum(done.sizes.values()) == done.bytes
    assert min(done.sizes.values()) > 0


def test_single_is_one_partition(spark: SparkSession, tmp_path: Path) -> None:
    assert "in 1" in ran(spark, tmp_path, routed={"small/": "single"}).lines("joined")
