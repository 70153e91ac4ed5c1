"""Tables and datasets on a real HDFS: renames that take no name twice, locks that are leases, commits over both."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.manifest import Manifest, StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.files.hadoop_store import HadoopStore
from airflow_dagsched.spark.files.stores import open_store
from airflow_dagsched.spark.outputs.commits import CommitLog
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.outputs.locks import hold_lock
from tests.testbed.hdfs import SPARK, hdfs

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    """URL of an empty HDFS."""
    with hdfs(["127.0.0.2"]) as files:
        yield files.url


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """Local, its default file system too: HDFS is named by its scheme."""
    builder = SparkSession.builder.master("local[2]").appName("tests").config("spark.ui.enabled", "false")
    for name, value in SPARK.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture
def store(spark: SparkSession) -> HadoopStore:
    """Files of HDFS."""
    return HadoopStore(spark)


def test_a_name_is_taken_once(store: HadoopStore, root: str):
    """Of a file, of a folder, and nothing is moved into a folder that is there."""
    folder = f"{root}/names"
    assert store.create_exclusive(f"{folder}/one", "1")
    assert not store.create_exclusive(f"{folder}/one", "2")
    assert store.read_text(f"{folder}/one") == "1"
    store.mkdirs(f"{folder}/a/b")
    store.mkdirs(f"{folder}/c")
    with pytest.raises(FileExistsError):
        store.rename(f"{folder}/a", f"{folder}/c")
    with pytest.raises(FileNotFoundError):
        store.rename(f"{folder}/a", f"{folder}/no/such")
    with pytest.raises(FileNotFoundError):
        store.rename(f"{folder}/none", f"{folder}/d")
    assert not store.delete_empty(f"{folder}/a")
    assert store.delete_empty(f"{folder}/a/b")
    assert [entry.name for entry in store.list(folder)] == ["a", "c", "one"]


def test_one_holder_of_a_lock_after_the_other(store: HadoopStore, root: str):
    """Each with a token of its own."""
    tokens = []
    for _ in range(3):
        with hold_lock(store, f"{root}/locks/lock") as fence:
            fence.check()
            tokens.append(fence.token)
    assert tokens == ["1", "2", "3"]


@pytest.fixture
def outputs_of(spark: SparkSession, root: str) -> Iterator[Callable[..., Outputs]]:
    """``outputs_of(table, work_dir=, interval=)``."""
    made: list[Outputs] = []

    def make(table: Table, work_dir: str, interval: str = "monday") -> Outputs:
        manifest = Manifest(
            package_version="1",
            python="3.11",
            dag_id=work_dir,
            dataflow="flow",
            group="g",
            run_id="run",
            try_number=1,
            clear_number=0,
            work_dir=f"{root}/{work_dir}",
            events="",
            interval_key=interval,
            targets=(),
            steps=(StepSpec("step", "code", writes=table),),
        )
        store = open_store(spark, manifest.work_dir)
        made.append(Outputs(spark, store, CommitLog(store, manifest.work_dir), manifest))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_two_work_dirs_write_one_table(outputs_of: Callable[..., Outputs], spark: SparkSession, root: str, mode: str):
    """Each twice, each its own rows: both are there, once."""
    table = Table(f"{root}/data/{mode}", partition_by=("p",), mode=mode)  # type: ignore[arg-type]
    step = StepSpec("step", "code", writes=table)
    for count in (2, 3):
        for number, work_dir in enumerate("ab"):
            df = spark.range(count).selectExpr("id", f"{number} p")
            outputs = outputs_of(table, work_dir)
            committed = outputs.write_table(df, step, "f", spark)
            assert outputs.read(committed, spark).count() == count
    found = spark.read.parquet(table.location).groupBy("p").count().collect()
    assert {row.p: row["count"] for row in found} == {0: 3, 1: 3}


def test_a_dataset(outputs_of: Callable[..., Outputs], spark: SparkSession, root: str):
    """Written, read, missed."""
    outputs = outputs_of(Table(f"{root}/data/none"), "c")
    committed = outputs.write_dataset(spark.range(9), StepSpec("step", "code"), "", "f")
    assert outputs.read(committed, spark).count() == 9
    HadoopStore(spark).delete(f"{committed.path}/{committed.files[0][0]}")
    assert not outputs.holds(committed)
