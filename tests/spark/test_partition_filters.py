"""What pruning leaves out is what Spark's own PartitionFilters leave out, and its hash is Spark's."""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.model.dataflow import Buckets
from airflow_dagsched.plan.pruning.buckets import find_needed_buckets
from airflow_dagsched.plan.pruning.conditions.condition import Comparison, Value
from airflow_dagsched.plan.pruning.conditions.query import read_query
from airflow_dagsched.plan.pruning.layout import list_stored
from tests.plan.prune.trees import Tree

pytestmark = pytest.mark.spark

DAYS = ["2013-01-01", "2013-01-02", "2013-02-10"]
ALL = frozenset(product(DAYS, (0, 5, 10), ("AA", "ab")))
EQUAL = [
    "day = '2013-01-01'",
    "day = DATE '2013-01-02' and hour < 5",
    "day >= '2013-01-02' and carrier = 'ab'",
    "day between '2013-01-01' and '2013-01-31'",
    "hour in (0, 10) or day = '2013-02-10'",
    "not (hour = 5) and carrier <> 'AA'",
    "day not in ('2013-01-01', '2013-01-02')",
    "hour > 4 and amount > 5",
    "(day = '2013-01-01' and amount = 1) or (day = '2013-01-02' and amount = 2)",
    "HOUR <=> 5",
    "day >= '2013-02'",
    "carrier is not null and 5 <= hour",
]
WIDER = ["lower(carrier) = 'aa'", "year(day) = 2013 and hour + 1 = 6", "carrier like 'A%'", "hour = '5'"]
"""Spark evaluates functions too; pruning reads what they may need."""


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filters") / "t"
    rows = [(day, hour, carrier, amount) for day, hour, carrier in ALL for amount in (1, 7)]
    frame = spark.createDataFrame(rows, "day string, hour int, carrier string, amount int")
    frame.coalesce(1).write.partitionBy("day", "hour", "carrier").parquet(str(path))
    spark.read.parquet(str(path)).createOrReplaceTempView("t")
    return path


def spark_reads(spark: SparkSession, where: str) -> int:
    """Partitions that the scan of a query read, by its own metric."""
    frame = spark.sql(f"select * from t where {where}")
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    scan = leaves.head()
    while "FileScan" not in scan.toString().splitlines()[0]:  # below adaptive execution
        scan = scan.executedPlan().collectLeaves().head()
    return int(scan.metrics().apply("numPartitions").value())


def pruned_reads(table: Path, where: str) -> set[tuple[str, int, str]]:
    """Partitions that the step's SQL is listed for."""
    files = {str(file): 1 for file in table.rglob("*.parquet")}
    listing = list_stored(Tree(files), str(table), read_query(f"select * from t where {where}").conditions["t"])
    assert listing.objection is None
    keys = [stored.partition.key for stored in listing.stored]
    return {(str(key["day"]), int(str(key["hour"])), str(key["carrier"])) for key in keys}


@pytest.mark.parametrize("where", EQUAL)
def test_as_many_partitions_as_spark_reads(spark: SparkSession, table: Path, where: str) -> None:
    assert len(pruned_reads(table, where)) == spark_reads(spark, where)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("where", [*EQUAL, *WIDER])
def test_no_row_is_lost(spark: SparkSession, table: Path, where: str, ansi: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        found = spark.sql(f"select distinct cast(day as string), hour, carrier from t where {where}").collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert {tuple(row) for row in found} <= pruned_reads(table, where)


def test_the_filters_are_on_the_scan(spark: SparkSession, table: Path) -> None:
    """What is compared above is Spark's static pruning, not a filter after the scan."""
    assert table.exists()
    explained = spark.sql("select * from t where day = '2013-01-01'")._jdf.queryExecution().toString()
    assert re.search(r"PartitionFilters: \[isnotnull\(day", explained)


VALUES: dict[str, list[Value]] = {
    "int": [0, 1, -1, 2**31 - 1, -(2**31)],
    "bigint": [0, 1, -1, 2**31, 2**63 - 1, -(2**63)],
    "string": ["", "a", "ab", "abc", "abcd", "abcdé", "日本語", "x" * 33],
    "date": [date(1970, 1, 1) + timedelta(days=at) for at in (-20000, -1, 0, 15706)],
}


@pytest.mark.parametrize("kind", VALUES)
def test_buckets_are_sparks(spark: SparkSession, kind: str) -> None:
    frame = spark.createDataFrame([(value,) for value in VALUES[kind]], f"c {kind}")
    buckets = Buckets(column="c", count=1000, type=kind)  # type: ignore[arg-type]
    for value, expected in frame.selectExpr("c", "pmod(hash(c), 1000)").collect():
        assert find_needed_buckets(Comparison("c", "=", value), buckets) == {expected}
