"""Where a changed stream gets its executors, on a cluster whose rooms a test sets: nobody is asked of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import TaskDeferred

from airflow_dagsched.launch.streams.manifest import StreamManifest
from airflow_dagsched.launch.streams.private_folder import read_settings
from airflow_dagsched.provider.streaming.launch_stream import resume_stream
from airflow_dagsched.provider.streaming.start_driver import read_private_manifest
from tests.provider.streaming.test_launch_stream import Tries, _surroundings, change, declare, run_first, tries

__all__ = ["_surroundings", "tries"]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets how many cores are free on each of its workers, of four."""

    def connect(**free: int) -> None:
        # A token for each slot but its own, of two slots.
        tokens = {"w1": "not_2", "w2": "not_1"}
        rooms = {
            name: {"cores": cores, "memory_mb": 2000 * cores, "resources": {tokens[name]: 9}}
            for name, cores in free.items()
        }
        workers = [
            {"id": name, "host": name, "cores": 4, "memory_mb": 8000, "free": room, "tokens": [tokens[name]]}
            for name, room in rooms.items()
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


@pytest.mark.parametrize(
    "settings",
    [
        {"executor_memory": "700m"},
        {"conf": {"spark.sql.extensions": "shop.Rules"}},
        {"jars": "/shop/rules.jar"},
        {"packages": "shop:rules:2"},
        {"py_files": "/shop/{{ ti.run_id }}.zip"},
    ],
)
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


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_lost_driver_s_executors_may_be_anywhere_once_their_worker_is_gone(
    dag: DAG, tries: Tries, tmp_path: Path, cluster: Any, is_gone: bool
):
    """Where it is still there they stay: the other workers are planned for others."""
    launch = declare(dag, tmp_path)
    flow = run_first(tries, launch)
    token = "spark.executor.resource.not_2.amount"
    before = read_settings(flow.locate(1).private)
    assert token in before
    flow.kill(1)
    flow.now += 1
    cluster(**({"w2": 4} if is_gone else {"w1": 4, "w2": 4}))
    with pytest.raises(TaskDeferred):
        resume_stream(tries.open(launch), {"event": "lost", "epoch": 1, "follows": 1})
    assert len(flow.started) == 2
    after = {name: value for name, value in before.items() if not (is_gone and name == token)}
    assert read_settings(flow.locate(1).private) == after
    assert (flow.locate(1).private / "spark.properties").stat().st_mode & 0o777 == 0o600
