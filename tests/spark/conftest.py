"""One real local Spark for the tests of this folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.manifest import Manifest, StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.files.stores import open_store
from airflow_dagsched.spark.outputs.commits import CommitLog
from airflow_dagsched.spark.outputs.group_outputs import Outputs


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """``local[2]`` with its own warehouse. Never stopped: a process has one, which ends with it."""
    return (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )


@pytest.fixture(autouse=True)
def plain_logging() -> Iterator[None]:
    """A root logger as in the driver program: Airflow, imported by other tests, puts handlers of its own on it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    root.setLevel(logging.WARNING)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def outputs_of(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Outputs]]:
    """Makes the outputs of a run: ``outputs_of(table, ..., interval=, run=, try_number=)``, closed after the test."""
    made: list[Outputs] = []

    def make(*tables: Table, interval: str = "2013-01-01", run: str = "run", try_number: int = 1) -> Outputs:
        manifest = Manifest(
            package_version="1",
            python="3.11",
            dag_id="dag",
            dataflow="flow",
            group="g",
            run_id=run,
            try_number=try_number,
            clear_number=0,
            work_dir=f"{tmp_path}/work",
            events=f"{tmp_path}/events",
            interval_key=interval,
            targets=(),
            steps=tuple(StepSpec(f"step{number}", "code", writes=table) for number, table in enumerate(tables)),
        )
        store = open_store(spark, manifest.work_dir)
        made.append(Outputs(spark, store, CommitLog(store, manifest.work_dir), manifest))
        return made[-1]

    yield make
    for each in made:
        each.close()
