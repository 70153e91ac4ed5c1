"""Tables of Spark's catalog that are files: created, overwritten by partition, appended once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.outputs.commits import Committed
from airflow_dagsched.spark.outputs.group_outputs import Outputs

pytestmark = pytest.mark.spark
OutputsOf = Callable[..., Outputs]


@pytest.fixture
def name(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """A table of the test's own, in a database of its own."""
    spark.sql("CREATE DATABASE IF NOT EXISTS tests")
    name = f"tests.t_{abs(hash(request.node.name))}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def write(outputs: Outputs, query: str, table: Table, spark: SparkSession) -> Committed:
    """Write a query's rows."""
    return outputs.write_table(spark.sql(query), StepSpec("s", "c", writes=table), "f", spark.newSession())


def rows(spark: SparkSession, name: str) -> list[tuple[object, ...]]:
    """As anyone reads the table."""
    return sorted((tuple(row) for row in spark.table(name).collect()), key=str)


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_overwrite_of_an_intervals_partitions(outputs_of: OutputsOf, spark: SparkSession, name: str, format_: str):
    """
    monday   p = x, null     ->   p = x
    tuesday  p = it's        ->   p = it's
    """
    table = Table(name, format_, partition_by=["p"])
    monday, tuesday = outputs_of(table), outputs_of(table, interval="tuesday")
    write(monday, "select 1 a, 'x' p union all select 2, null", table, spark)
    write(tuesday, 'select 3 a, "it\'s" p', table, spark)
    assert rows(spark, name) == [(1, "x"), (2, None), (3, "it's")]
    committed = write(monday, "select 4 a, 'x' p", table, spark)
    assert rows(spark, name) == [(3, "it's"), (4, "x")]
    assert spark.sql(f"SHOW PARTITIONS {name}").count() == 2
    assert [tuple(row) for row in monday.read(committed, spark).collect()] == [(4, "x")]
    assert committed.table == f"spark://{name}"
    assert monday.holds(committed)
    assert monday.exists(name)


def test_a_table_without_partitions_is_replaced(outputs_of: OutputsOf, spark: SparkSession, name: str):
    """Also one that another program created, with columns in another order."""
    spark.sql(f"CREATE TABLE {name} (a INT, b STRING) USING csv")
    spark.sql(f"INSERT INTO {name} VALUES (7, 'old')")
    table = Table(name)
    committed = write(outputs_of(table), "select 'x' b, 1 a", table, spark)
    assert rows(spark, name) == [(1, "x")]
    assert committed.format == "csv"


def test_append_once_per_interval(outputs_of: OutputsOf, spark: SparkSession, name: str):
    """A second run of the interval replaces what the first appended."""
    table = Table(name, mode="append")
    outputs = outputs_of(table)
    for query in ("select 1 a", "select 2 a"):
        write(outputs, query, table, spark)
    write(outputs_of(table, interval="tuesday"), "select 3 a", table, spark)
    assert rows(spark, name) == [(2,), (3,)]


def test_other_columns_are_refused(outputs_of: OutputsOf, spark: SparkSession, name: str):
    """With each difference, before anything is written."""
    table = Table(name)
    outputs = outputs_of(table)
    write(outputs, "select 1 a, 2 b", table, spark)
    with pytest.raises(InvalidInput, match="b: int in the table, None in the step; c: None in the table, string"):
        write(outputs, "select 1 a, 'x' c", table, spark)
    assert rows(spark, name) == [(1, 2)]


def test_other_partition_columns_are_refused(outputs_of: OutputsOf, spark: SparkSession, name: str):
    """The table has its own; a declaration that differs is a mistake."""
    outputs = outputs_of()
    write(outputs, "select 1 a, 2 b", Table(name, partition_by=["b"]), spark)
    with pytest.raises(InvalidInput, match=r"is partitioned by \['b'\], not by \['a'\] as declared"):
        write(outputs, "select 1 a, 2 b", Table(name, partition_by=["a"]), spark)
