"""Tables that commit by themselves. XML stands for them: a format of Spark's own that is not ours to swap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed, OutputGone
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.outputs.other_tables import CannotAppend

pytestmark = pytest.mark.spark
OutputsOf = Callable[..., Outputs]
ROW = {"rowTag": "row"}


def write(
    outputs: Outputs, query: str, table: Table, spark: SparkSession, fingerprint: str = "f", step: str = "s"
) -> Committed:
    """Write a query's rows."""
    return outputs.write_table(spark.sql(query), StepSpec(step, "c", writes=table), fingerprint, spark)


def rows(spark: SparkSession, table: Table) -> int:
    """As anyone reads the table."""
    return spark.read.format("xml").options(**ROW).load(table.location).count()


def test_overwrite_by_partition(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """The other interval's partition stays, and each interval reads its own."""
    table = Table(f"{tmp_path}/t", "xml", ["p"], options=ROW)
    outputs = outputs_of(table)
    committed = write(outputs, "select 1 a, 'x y' p union all select 2, null", table, spark)
    write(outputs_of(table, interval="tuesday"), "select 3 a, 'z' p", table, spark)
    again = write(outputs, "select 5 a, 'x y' p union all select 6, null", table, spark)
    assert rows(spark, table) == 3
    assert (committed.rows, committed.bytes, again.generation) == (2, None, 2)
    assert sorted(row.a for row in outputs.read(again, spark).collect()) == [5, 6]


def test_an_append_is_made_once(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """The second time only the record is new; other rows for the same interval are refused."""
    table = Table(f"{tmp_path}/t", "xml", mode="append", options=ROW)
    outputs = outputs_of(table)
    write(outputs, "select 1 a", table, spark)
    again = write(outputs_of(table, run="other"), "select 1 a", table, spark)
    assert rows(spark, table) == 1
    assert (again.run_id, again.generation) == ("other", 2)
    with pytest.raises(CannotAppend, match="run other appended other rows"):
        write(outputs, "select 2 a", table, spark, fingerprint="g")
    with pytest.raises(OutputGone, match="cannot be told from others"):
        outputs.read(again, spark)


def test_an_append_in_doubt_is_refused(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """An earlier try said that it would, and not that it did: nobody knows."""
    table = Table(f"{tmp_path}/t", "xml", mode="append", options=ROW)
    log = CommitLog(LocalStore(), f"{tmp_path}/work")
    log.homes.settle(table.location, LocalStore(), table.location)
    intent = log.get_intent_path(table.location, "2013-01-01", "dag/flow/s")
    LocalStore().write_text(intent, '"version 7"')
    with pytest.raises(CannotAppend, match="an earlier try may have"):
        write(outputs_of(table), "select 1 a", table, spark)
    assert not Path(table.location).exists()


def test_two_steps_append_to_one_table(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """Each once; what the one said it would append puts the other in no doubt."""
    table = Table(f"{tmp_path}/t", "xml", mode="append", options=ROW)
    outputs = outputs_of(table)
    for _ in range(2):
        write(outputs, "select 1 a", table, spark)
        write(outputs, "select 2 a", table, spark, fingerprint="g", step="other")
    assert rows(spark, table) == 2


def test_two_steps_overwrite_one_table(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """A partition each stays; a commit that the other step wrote over is not there any more."""
    table = Table(f"{tmp_path}/t", "xml", ["p"], options=ROW)
    outputs = outputs_of(table)
    us = write(outputs, "select 1 a, 'us' p", table, spark)
    de = write(outputs, "select 2 a, 'de' p", table, spark, step="other")
    assert rows(spark, table) == 2
    assert outputs.holds(us)
    assert outputs.holds(de)
    write(outputs, "select 3 a, 'us' p", table, spark, step="third")
    assert not outputs.holds(us)
    assert outputs.holds(de)
