"""Outputs as a whole: keys, datasets, several threads, and a torn swap found at the start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.files.hadoop_store import HadoopStore
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.outputs.commits import CommitLog, Origin, OutputGone
from airflow_dagsched.spark.outputs.datasets import Datasets
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.outputs.leases import Keeper
from airflow_dagsched.spark.outputs.swap import Swap, list_torn, write_journal

pytestmark = pytest.mark.spark
OutputsOf = Callable[..., Outputs]
STEP = StepSpec("step", "code")


@pytest.mark.parametrize(
    ("table", "name", "key"),
    [
        (None, "", "dag/flow/step/"),
        (None, "late", "dag/flow/step/late"),
        (Table("/data/t/"), "", "/data/t"),
        (Table("file:///data/t"), "", "/data/t"),
        (Table("hdfs://name/t/"), "", "hdfs://name/t"),
        (Table("db.t"), "", "db.t"),
        (Table("/data/t"), "late", "dag/flow/step/late"),
    ],
)
def test_output_key(outputs_of: OutputsOf, table: Table | None, name: str, key: str):
    """A table is one output whoever writes it, in whatever spelling; a dataset is its step's."""
    assert outputs_of().get_output_key(replace(STEP, writes=table), name) == key


def test_a_dataset_comes_back_as_it_was(outputs_of: OutputsOf, spark: SparkSession):
    """Types that Parquet has not, too; by record, and by path alone."""
    first = spark.sql("select 1 a, null v, array(1.5bd) `odd, name`, timestamp'2013-01-01' t")
    df = first.union(spark.sql("select 2, null, null, null"))
    outputs = outputs_of()
    committed = outputs.write_dataset(df, STEP, "late", "f")
    assert (committed.rows, committed.table, committed.partitions) == (2, None, ())
    assert committed.bytes is not None
    assert committed.bytes > 0
    for found in (outputs.read(committed, spark), outputs.read_path(committed.path, spark)):
        assert found.dtypes == df.dtypes
        assert sorted(found.collect()) == sorted(df.collect())
    assert all(name.endswith(".zstd.parquet") for name, _ in committed.files)
    assert outputs.exists(committed.path)
    assert not outputs.exists(committed.path + "x")


def test_each_commit_of_a_dataset_has_its_own_folder(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """So that a reader of the older one is not disturbed; the newest is the output."""
    outputs = outputs_of()
    first = outputs.write_dataset(spark.range(3), STEP, "", "f1")
    second = outputs.write_dataset(spark.range(0), STEP, "", "f2")
    assert (first.generation, second.generation) == (1, 2)
    assert [outputs.read(each, spark).count() for each in (first, second)] == [3, 0]
    log = CommitLog(LocalStore(), f"{tmp_path}/work")
    assert log.find_latest("dag/flow/step/", "2013-01-01") == second


def test_a_dataset_that_is_gone_says_so(outputs_of: OutputsOf, spark: SparkSession):
    """Retention, or a person, was there first."""
    outputs = outputs_of()
    committed = outputs.write_dataset(spark.range(3), STEP, "", "f")
    assert outputs.holds(committed)
    LocalStore().delete(committed.path)
    assert not outputs.holds(committed)
    with pytest.raises(OutputGone, match="the folder is missing"):
        outputs.read(committed, spark)


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_dataset_that_lost_a_file_is_not_read(outputs_of: OutputsOf, spark: SparkSession, damage: str):
    """One of four: nine of twelve rows would be there. By record and by path."""
    outputs = outputs_of()
    committed = outputs.write_dataset(spark.range(0, 12, 1, 4), STEP, "", "f")
    assert len(committed.files) == 4
    assert outputs.holds_path(committed.path)
    file = Path(committed.path, committed.files[2][0])
    file.unlink() if damage == "gone" else file.write_bytes(file.read_bytes()[:-9])
    assert not outputs.holds(committed)
    assert not outputs.holds_path(committed.path)
    for read in (lambda: outputs.read(committed, spark), lambda: outputs.read_path(committed.path, spark)):
        with pytest.raises(OutputGone, match="1 of 4 files are missing"):
            read()


def test_files_that_came_later_are_not_read(outputs_of: OutputsOf, spark: SparkSession):
    """A dataset is the files of its record."""
    outputs = outputs_of()
    committed = outputs.write_dataset(spark.range(3), STEP, "", "f")
    spark.range(5).write.mode("append").parquet(committed.path)
    assert outputs.read(committed, spark).count() == 3


def test_a_failed_dataset_leaves_nothing(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """Neither a record, nor a folder, nor a lease that others wait for."""
    with pytest.raises(PySparkException):
        outputs_of().write_dataset(spark.sql("select raise_error('no') as id"), STEP, "", "f")
    assert list(tmp_path.glob("work/datasets/*/*/*")) == []
    assert outputs_of(run="other").write_dataset(spark.range(1), STEP, "", "f").generation == 2


def test_many_threads_write_at_once(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """Datasets and tables of one driver, side by side."""
    tables = [Table(f"{tmp_path}/t{number}", partition_by=["p"]) for number in range(3)]
    outputs = outputs_of(*tables)
    counts: dict[str, int | None] = {}

    def write(number: int) -> None:
        df = spark.range(number + 1).selectExpr("id", "id % 2 as p")
        table = replace(STEP, writes=tables[number])
        counts[f"t{number}"] = outputs.write_table(df, table, "f", spark.newSession()).rows
        counts[f"d{number}"] = outputs.write_dataset(df, STEP, f"d{number}", "f").rows

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert counts == {"t0": 1, "d0": 1, "t1": 2, "d1": 2, "t2": 3, "d2": 3}


def test_a_torn_swap_is_finished_by_the_next_driver(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """Before any of its steps runs: the commit counted, so a reader must see it."""
    table = Table(f"{tmp_path}/t")
    outputs = outputs_of(table)
    committed = outputs.write_table(spark.range(3), replace(STEP, writes=table), "f", spark)
    draft = f"{tmp_path}/.dagsched-t/0-1-0"
    LocalStore().mkdirs(draft)
    LocalStore().rename(table.location, f"{draft}/new")
    record = f"{tmp_path}/.dagsched-t/commits/2013-01-01/0000000001.json"
    write_journal(LocalStore(), Swap(record, committed.tag, table.location, draft, "overwrite", ("",)))
    outputs_of(table)
    assert spark.read.parquet(table.location).count() == 3
    assert list_torn(LocalStore(), table.location) == ()


def test_through_hadoops_file_system(spark: SparkSession, tmp_path: Path):
    """All of it, records, leases and data, with nothing but Hadoop's API: as on HDFS."""
    store, work_dir = HadoopStore(spark), f"file://{tmp_path}/work"
    log = CommitLog(store, work_dir)
    keeper = Keeper(log, run_id="run")
    datasets = Datasets(store, work_dir, log, keeper)
    key = ("dag/flow/step/", "2013-01-01T00:00:00+00:00")
    for generation in (1, 2):
        committed = datasets.write(spark.range(3), Origin(*key, "f", "run", TryId()))
        assert committed.generation == generation
        assert datasets.read(committed, spark).count() == 3
    assert log.find_latest(*key) == committed
    keeper.close()
