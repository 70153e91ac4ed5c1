"""A dataflow on a real standalone cluster: read by the planner hook, used by the launch task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from tests.dags.conftest import Play
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.airflow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    with standalone_cluster(workers=2, cores=2, memory_mb=2048) as started:
        yield started


def test_the_hook_reads_the_workers(cluster: StandaloneCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers of 2 cores and 2048 MiB, all of it free."""
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", cluster.connection())
    found = PlannerHook("cluster").cluster()
    assert (found.manager, sorted(worker.host for worker in found.workers)) == (
        "standalone",
        ["127.0.0.2", "127.0.0.3"],
    )
    assert {(worker.free_cores, worker.free_memory_mb) for worker in found.workers} == {(2, 2048)}
    assert PlannerHook("cluster").test_connection() == (True, "standalone: 2 worker(s), 4 cores free")


def test_a_dataflow_runs_on_it(cluster: StandaloneCluster, play: Play, home: Path) -> None:
    """The example's steps end green, and the Master saw exactly one application."""
    before = len(cluster.state()["completedapps"])
    run = play("sql_steps", AIRFLOW_CONN_SPARK_DEFAULT=cluster.connection())
    assert set(run["tasks"].values()) == {"success"}
    assert len(cluster.state()["completedapps"]) == before + 1


def test_a_master_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line: what was asked, and what to do."""
    gone = StandaloneCluster("spark://127.0.0.1:9", "http://127.0.0.1:9")
    monkeypatch.setenv("AIRFLOW_CONN_GONE", gone.connection())
    with pytest.raises(LaunchRefused, match=r"http://127.0.0.1:9/json/ gave no answer.*master_ui"):
        PlannerHook("gone").cluster()
