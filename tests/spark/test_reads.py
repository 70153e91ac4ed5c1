"""Reads narrowed to the needed partitions, on a real Spark: what is listed, what is read, and that columns stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.manifest import Needed
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.plan.pruning import list_stored
from airflow_dagsched.plan.pruning.conditions.where import parse_condition
from airflow_dagsched.provider.clusters.folder_listing import FileLister
from airflow_dagsched.spark.inputs.reads import narrow_reads
from airflow_dagsched.spark.session.current import limit_reads
from tests.spark.running import Flow, run

pytestmark = pytest.mark.spark

WHERE = "day = '2013-01-02'"
ONE = Needed(("day=2013-01-02",))
NONE = Needed(("day=2013-01-01",), no_rows=True)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three days of four rows."""
    narrow_reads()
    path = str(tmp_path_factory.mktemp("reads") / "[my] t")
    rows = spark.range(12).selectExpr("id", "cast(date_add(date'2013-01-01', cast(id % 3 as int)) as string) as day")
    rows.coalesce(1).write.partitionBy("day").parquet(path)
    return path


def listed(df: DataFrame) -> list[str]:
    """Root paths of the only scan: all that Spark lists."""
    relation = df._jdf.queryExecution().analyzed().collectLeaves().head().relation()
    roots = relation.location().rootPaths()
    return sorted(roots.apply(at).getName() for at in range(roots.size()))


def files(df: DataFrame) -> set[str]:
    """Partitions of the files that a job over ``df`` opens."""
    found = df.select(sf.input_file_name().alias("file")).distinct().collect()
    return {Path(row.file).parent.name for row in found}


WAYS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "parquet": lambda spark, path: spark.read.parquet(path),
    "a slash at the end": lambda spark, path: spark.read.parquet(f"{path}/"),
    "with its scheme": lambda spark, path: spark.read.parquet(f"file://{path}"),
    "load": lambda spark, path: spark.read.format("parquet").load(path),
    "load by name": lambda spark, path: spark.read.load(path=path, format="parquet"),
    "load of a list": lambda spark, path: spark.read.load([path], "parquet"),
}


@pytest.mark.parametrize("way", WAYS)
def test_only_the_needed_folder_is_listed_and_read(spark: SparkSession, table: str, way: str) -> None:
    """As much as Spark's own PartitionFilters read, which list everything first."""
    whole = spark.read.option("__globPaths__", "false").parquet(table)
    with limit_reads({table: ONE}):
        found = WAYS[way](spark, table)
    assert listed(found) == ["day=2013-01-02"]
    assert listed(whole) == [Path(table).name]
    assert files(found) == files(whole.where(WHERE)) == {"day=2013-01-02"}
    assert found.schema == whole.schema
    assert sorted(found.where(WHERE).collect()) == sorted(whole.where(WHERE).collect())


def test_other_reads_are_left_alone(spark: SparkSession, table: str) -> None:
    """A partition's own folder, a table that is not declared, a read outside of the step."""
    with limit_reads({"/elsewhere": ONE}):
        assert spark.read.option("__globPaths__", "false").parquet(table).count() == 12
    with limit_reads({table: ONE}):
        folder = spark.read.option("__globPaths__", "false").parquet(f"{table}/day=2013-01-03")
    assert folder.columns == ["id"]


def test_nothing_is_needed_but_the_columns(spark: SparkSession, table: str) -> None:
    with limit_reads({table: NONE}):
        found = spark.read.parquet(table)
    assert (found.columns, found.count(), listed(found)) == (["id", "day"], 0, ["day=2013-01-01"])


@pytest.mark.parametrize("where", [WHERE, "day > '2013-01-01'", "day in ('2013-01-03', '2013-01-01')"])
def test_what_the_lister_finds_is_what_spark_reads(spark: SparkSession, table: str, where: str) -> None:
    listing = list_stored(*FileLister.of(table), parse_condition(where, {}))
    folders = tuple(stored.folder for stored in listing.stored)
    whole = spark.read.option("__globPaths__", "false").parquet(table)
    with limit_reads({table: Needed(folders)}):
        assert files(spark.read.parquet(table)) == files(whole.where(where)) == set(folders)


def day_of(table: str) -> Flow:
    """read ══> clean ══> total (a count), clean ══> copy; rates ══> joined <══ clean"""
    flow = Flow()

    def read(spark):
        return spark.read.parquet(table)

    def rates(spark):
        return spark.range(3)

    def clean(read):
        return read.where("id >= 0")

    def copy(clean):
        return clean

    def joined(clean, rates):
        return clean.join(rates, "id")

    def total(clean):
        return clean.groupBy().count()

    idle: dict[str, Any] = {"pruned": "no rows", "works_without_input": False}
    flow.step(read, reads=(Table(table),), needed={table: NONE}, **idle)
    flow.step(rates)
    flow.step(clean, **idle)
    flow.step(copy, writes=Table(f"{table}-copy"), **idle)
    flow.step(joined, writes=Table(f"{table}-joined"), **idle)
    flow.step(total, store=("",))
    return flow


def test_an_empty_day_still_counts_to_zero(spark: SparkSession, table: str, tmp_path: Path) -> None:
    """read and clean are called for the columns that total needs; copy and joined are not, and so rates is not read."""
    ran = run(spark, tmp_path, day_of(table))
    assert ran.ok
    assert ran.states == {
        **dict.fromkeys(("read", "clean", "copy", "joined", "rates"), "pruned"),
        "total": "success",
    }
    assert ran.ran == ["clean", "rates", "read", "total"]
    assert ran.done["copy"].reason == "no rows"
    assert spark.read.parquet(ran.done["total"].datasets[""]).collect() == [(0,)]
    assert not Path(f"{table}-copy").exists()


def test_a_retry_reuses_the_count(spark: SparkSession, table: str, tmp_path: Path) -> None:
    run(spark, tmp_path, day_of(table))
    again = run(spark, tmp_path, day_of(table), try_number=2)
    assert again.states["total"] == "reused"
    assert "total" not in again.ran


def test_a_later_group_makes_the_empty_rows_it_needs(spark: SparkSession, table: str, tmp_path: Path) -> None:
    """read and clean were pruned in a group of their own, which was never started."""
    ran = run(spark, tmp_path, day_of(table), targets=("total",))
    assert ran.states == {"total": "success"}
    assert spark.read.parquet(ran.done["total"].datasets[""]).collect() == [(0,)]


def test_other_partitions_do_not_change_what_is_reused(spark: SparkSession, tmp_path: Path) -> None:
    """A day that arrives later is no reason to read the first one again."""
    narrow_reads()
    path = str(tmp_path / "t")
    flow = Flow()

    def read(spark):
        return spark.read.parquet(path)

    flow.step(read, reads=(Table(path),), needed={path: Needed(("day=1",))}, store=("",))
    spark.range(3).selectExpr("id", "1 as day").write.partitionBy("day").parquet(path)
    assert run(spark, tmp_path, flow).states == {"read": "success"}
    spark.range(3).selectExpr("id", "2 as day").write.partitionBy("day").mode("append").parquet(path)
    assert run(spark, tmp_path, flow, try_number=2).states == {"read": "reused"}
    spark.range(3).selectExpr("id", "1 as day").write.partitionBy("day").mode("append").parquet(path)
    assert run(spark, tmp_path, flow, try_number=3).states == {"read": "success"}
