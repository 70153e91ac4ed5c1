"""A work folder is a folder of this machine, whoever names it: anything else would become one of an odd name."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.provider.clusters.reservations import Reservations
from airflow_dagsched.provider.spec.run_history import locate_history
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir, parse_local_root

REFUSED = [
    "s3a://bucket/work", "S3A://bucket/work", "hdfs://nn/work", "hdfs:/work", "dbfs:/work", "h:/work", "viewfs:///w",
    " s3a://bucket/work", "\ts3a://bucket/work", " /data", "/data ", "/data\n", "/da\x00ta",
    "file://host/data", "file:data", "file:", "file:////host/data", "//host/data",
    "{{ var.value.work }}", "/data/{{ ds }}", "~/work", "data/work", ".", "$HOME/work",
]  # fmt: skip


@task.spark_step
def orders(spark):
    return spark.range(3)


@pytest.mark.parametrize("refused", REFUSED)
def test_what_is_no_local_folder_is_refused(dag: DAG, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    """In a DAG file, in Airflow's configuration (also for a dataflow with its own), and where it is used."""
    with pytest.raises(InvalidInput, match="DAG 'sales', dataflow 'f': work_dir: must be an absolute path"):
        SparkDataflow("f", work_dir=refused)
    with pytest.raises(InvalidInput, match="must be an absolute path"):
        Reservations(refused, "local[2]")
    if "\x00" in refused or refused[0] in "~$":
        return  # no environment takes the one, Airflow expands the others in its configuration
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", refused)
    for name, own in (("g", None), ("h", "/data")):
        with pytest.raises(InvalidInput, match=rf"dataflow '{name}': \[dagsched\] work_dir: must be an absolute path"):
            SparkDataflow(name, work_dir=own)


@pytest.mark.parametrize("local", ["/w", "/w/", "file:///w", "file:/w", "file://localhost/w"])
def test_a_local_folder_counts_as_its_path(dag: DAG, monkeypatch: pytest.MonkeyPatch, local: str) -> None:
    with SparkDataflow("f", work_dir=local) as flow:
        orders()
    assert locate_history(flow.spec) == Path("/w/history/sales/f.json")
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", local)
    assert (flow.spec.work_dir, find_default_work_dir(), parse_local_root(local)) == ("/w", "/w", Path("/w"))


def test_without_a_word_it_is_beside_the_dags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    assert find_default_work_dir() == str(tmp_path / "dagsched")
