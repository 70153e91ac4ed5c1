"""Each run, and each submit, has folders of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk import DAG, task
from msgspec.structs import replace

from airflow_dagsched import Interval, SparkDataflow
from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.provider.authoring.rehearsal import _make_facts
from airflow_dagsched.provider.runtime.folders import locate_group_folder, make_own_folder


@task.spark_step
def rows(spark):
    return spark.range(3)


def test_other_names_and_other_runs_of_a_name_have_other_folders(dag: DAG, tmp_path: Path) -> None:
    """``+`` and ``:`` are in the id of every manual run; a run made again has the id of the first."""
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        rows()
    (launch,) = flow.launches()
    known = _make_facts(dag, Interval("local"))
    runs = [
        replace(known, dag_id=dag_id, run_id=run_id, try_id=TryId(began))
        for dag_id in ("a+b", "a:b", "a_b", "a/b", "A_b")
        for run_id in ("a+b", "a:b", "a b", "..", "..%")
        for began in ("2026-03-05T06:07:08.123456Z", "2026-03-05T06:07:08.123457Z")
    ]
    folders = {locate_group_folder(launch.spec, run) for run in runs}
    assert len(folders) == len(runs)
    assert {len(folder.relative_to(tmp_path / "runs").parts) for folder in folders} == {5}
    assert all(folder.resolve().is_relative_to(tmp_path / "runs") for folder in folders)


def test_all_tries_of_a_run_share_a_folder(dag: DAG, tmp_path: Path) -> None:
    """One leaves something there for the next."""
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        rows()
    known = _make_facts(dag, Interval("local"))
    tries = (TryId("r", 0, 1), TryId("r", 0, 2), TryId("r", 3, 4))
    assert len({locate_group_folder(flow.launches()[0].spec, replace(known, try_id=each)) for each in tries}) == 1


def test_no_folder_is_made_twice(tmp_path: Path) -> None:
    made = [make_own_folder(tmp_path / "run" / "0-1", "launch") for _ in range(3)]
    assert [folder.name for folder in made] == ["0-1", "0-1.2", "0-1.3"]


def test_a_work_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A file lies where a folder is to be: no later try finds it otherwise."""
    (tmp_path / "runs").write_text("")
    with pytest.raises(LaunchRefused, match=r"launch: the work folder cannot be written: .*runs.*work_dir=") as refused:
        make_own_folder(tmp_path / "runs" / "daily" / "0-1", "launch")
    assert not refused.value.passing
