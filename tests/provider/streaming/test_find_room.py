"""Where a changed stream gets its executors, on a cluster whose rooms a test sets: nobody is asked of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_dagsched.launch.streams.manifest import StreamManifest
from airflow_dagsched.provider.streaming.start_driver import read_private_manifest
from tests.provider.streaming.test_launch_stream import Tries, _surroundings, change, declare, run_first, tries

__all__ = ["_surroundings", "tries"]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets how many cores are free on each of its workers, of four."""

    def connect(**free: int) -> None:
        workers = [
            {
                "id": name,
                "host": name,
                "cores": 4,
                "memory_mb": 8000,
                "free": {"cores": cores, "memory_mb": 2000 * cores},
            }
            for name, cores in free.items()
        ]
        extra = {
            "cluster": {"manager": "standalone", "workers": workers},
            "if_unreachable": "declared",
            "master_ui": "http://127.0.0.1:9",
        }
        raw = {"conn_type": "spark", "host": "spark://127.0.0.1:9", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(raw))

    connect(w1=4, w2=0)
    return connect


def read_manifests(tries: Tries) -> tuple[StreamManifest, StreamManifest]:
    one, other = (read_private_manifest(tries.flow.locate(epoch), tries.flow.work_dir) for epoch in (1, 2))
    return one, other


def test_a_changed_graph_joins_the_application_that_runs_although_others_would_have_more_room(
    dag: DAG, tries: Tries, tmp_path: Path, cluster: Any
):
    flow = run_first(tries, declare(dag, tmp_path))
    cluster(w1=0, w2=4)
    tries.meanwhile = [lambda: None, lambda: flow.begin(2)]
    assert tries.run(change(tmp_path), "run 2") == 2
    old, new = read_manifests(tries)
    assert old.workers == ("w1",)
    assert (new.workers, new.application) == (old.workers, old.application)
    assert len(flow.started) == 1


@pytest.mark.parametrize("settings", [{"executor_memory": "700m"}, {"conf": {"spark.sql.extensions": "shop.Rules"}}])
def test_what_the_application_that_runs_does_not_take_goes_where_there_is_room(
    dag: DAG, tries: Tries, tmp_path: Path, cluster: Any, settings: dict[str, Any]
):
    flow = run_first(tries, declare(dag, tmp_path))
    cluster(w1=0, w2=4)
    assert tries.run(change(tmp_path, **settings), "run 2") == 2
    assert [each.workers for each in read_manifests(tries)] == [("w1",), ("w2",)]
    assert len(flow.started) == 2


def test_an_owner_that_does_not_run_has_no_application_to_join(dag: DAG, tries: Tries, tmp_path: Path, cluster: Any):
    flow = run_first(tries, declare(dag, tmp_path))
    flow.kill(1)
    cluster(w1=0, w2=4)
    assert tries.run(change(tmp_path), "run 2") == 2
    assert [each.workers for each in read_manifests(tries)] == [("w1",), ("w2",)]


def test_with_room_for_one_graph_only_the_old_one_s_counts_as_free(
    dag: DAG, tries: Tries, tmp_path: Path, cluster: Any
):
    flow = run_first(tries, declare(dag, tmp_path))
    cluster(w1=0)
    assert tries.run(change(tmp_path, overlap="sequential", driver_memory="3g"), "run 2") == 2
    assert [each.workers for each in read_manifests(tries)] == [("w1",), ("w1",)]
    assert len(flow.started) == 1
