"""Where a changed stream gets its executors, on a cluster whose rooms a test sets: nobody is asked of it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, TaskDeferred

from airflow_dagsched.launch.streams.manifest import StreamManifest
from airflow_dagsched.launch.streams.private_folder import read_settings
from airflow_dagsched.provider.runtime import allocation
from airflow_dagsched.provider.streaming.find_room import Beside
from airflow_dagsched.provider.streaming.launch_stream import execute_stream, resume_stream
from airflow_dagsched.provider.streaming.relocation.judge_move import Move
from airflow_dagsched.provider.streaming.relocation.move_watch import LOOK_S, MoveWatch
from airflow_dagsched.provider.streaming.start_driver import read_private_manifest
from airflow_dagsched.provider.wiring.stream_launch import StreamLaunchOperator
from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.signs_files import read_sign, write_sign
from airflow_dagsched.switch.places import INBOX_SERVICE
from airflow_dagsched.switch.say import tell_story
from airflow_dagsched.switch.signs import Sign
from tests.provider.streaming.flows import Flow
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


def test_what_fills_the_inboxes_has_room_of_its_own(dag: DAG, tries: Tries, tmp_path: Path, cluster: Any):
    """Its files are its own, too: those of the graph that was there first go with it."""
    cluster(w1=4, w2=4)
    # On one worker, where the policy that knows state would level it over both.
    tries.run(declare(dag, tmp_path, channel="inbox", placement="cheapest"))
    graph = read_private_manifest(tries.flow.locate(1), tries.flow.work_dir)
    service = read_private_manifest(tries.flow.places.inbox_service, tries.flow.work_dir)
    assert sorted((*graph.workers, *service.workers)) == ["w1", "w2"]
    settings = read_settings(tries.flow.places.inbox_service.private)
    assert settings["spark.cores.max"] == "1"
    assert str(tries.flow.locate(1).folder) not in "".join(settings.values())


def test_without_room_for_what_fills_the_inboxes_nothing_is_asked_for(
    dag: DAG, tries: Tries, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
):
    cluster(w1=3)
    # Not of the whole process: threads of others sleep, too.
    monkeypatch.setattr(allocation, "time", SimpleNamespace(sleep=tries.sleep, time=time.time))
    launch = declare(dag, tmp_path, channel="inbox", deploy_within=5)
    with pytest.raises(
        AirflowException, match=r"no room on the cluster for what fills the inboxes, an app.* within 5 s"
    ):
        execute_stream(tries.open(launch))
    assert not tries.flow.story.epochs
    assert not tries.flow.places.inbox_service.private.exists()


def test_what_fills_the_inboxes_stays_as_it_is_while_a_graph_reads(
    dag: DAG, tries: Tries, tmp_path: Path, cluster: Any
):
    cluster(w1=4, w2=4)
    flow = run_first(tries, declare(dag, tmp_path, channel="inbox"))
    before = flow.places.inbox_service.private.stat()
    cluster(w1=0, w2=0)
    tries.meanwhile = [lambda: None, lambda: flow.begin(2)]
    assert tries.run(change(tmp_path, channel="inbox"), "run 2") == 2
    assert flow.places.inbox_service.private.stat() == before


def test_what_fills_the_inboxes_may_be_anywhere_once_its_worker_is_gone(
    dag: DAG, tries: Tries, tmp_path: Path, cluster: Any
):
    cluster(w1=4, w2=4)
    launch = declare(dag, tmp_path, channel="inbox")
    flow = run_first(tries, launch)
    private = flow.places.inbox_service.private
    token = next(name for name in read_settings(private) if name.startswith("spark.executor.resource."))
    flow.kill(INBOX_SERVICE)
    flow.now += 1
    cluster(**({"w2": 4} if "not_1" in token else {"w1": 4}))
    with pytest.raises(TaskDeferred):
        resume_stream(tries.open(launch), {"event": "lost", "epoch": INBOX_SERVICE, "follows": 1})
    assert token in read_settings(private)
    cluster(**({"w1": 4} if "not_1" in token else {"w2": 4}))
    flow.kill(INBOX_SERVICE)
    flow.now += 1
    with pytest.raises(TaskDeferred):
        resume_stream(tries.open(launch), {"event": "lost", "epoch": INBOX_SERVICE, "follows": 1})
    assert token not in read_settings(private)


ON_W1, ON_W2 = ("w1",), ("w2",)


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets cores, all and free, of each worker: the first is too small for what runs on it to be level."""

    def connect(**cores: tuple[int, int]) -> None:
        tokens = {"w1": "not_2", "w2": "not_1"}
        workers = [
            {
                "id": name, "host": name, "cores": whole, "memory_mb": 2000 * whole, "tokens": [tokens[name]],
                "free": {"cores": free, "memory_mb": 2000 * free, "resources": {tokens[name]: 9}},
            }
            for name, (whole, free) in cores.items()
        ]  # fmt: skip
        extra = {
            "cluster": {"manager": "standalone", "workers": workers},
            "if_unreachable": "declared",
            "master_ui": "http://127.0.0.1:9",
        }
        raw = {"conn_type": "spark", "host": "spark://127.0.0.1:9", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(raw))

    connect(w1=(4, 4))
    return connect


def run_on(tries: Tries, launch: StreamLaunchOperator, *hosts: str) -> Flow:
    """The flow of an epoch that has a batch, is the owner, and says where its executors are."""
    flow = run_first(tries, launch)
    write_sign(flow.locate(1), Sign(1, "app", flow.now, "running", state_rows=90_000, hosts=hosts))
    tries.states = {"run 1": "deferred"}
    return flow


def ask_to_move(tries: Tries, launch: StreamLaunchOperator, epoch: int = 1) -> None:
    """As the stream's watcher tells it."""
    stream = launch.flow.stream
    assert stream is not None
    told = {"flow": "clicks", "fingerprint": stream.fingerprint, "reason": "moved", "epoch": epoch, "why": ""}
    tries.events = {"clicks": [SimpleNamespace(extra={"payload": told})]}


def look_twice(flow: Flow) -> Move | None:
    watch = MoveWatch(flow.clock)
    watch.look(see(flow))
    assert watch.look(see(flow)) is None, "that is the same look"
    flow.now += LOOK_S
    refresh_sign(flow)
    return watch.look(see(flow))


def refresh_sign(flow: Flow) -> None:
    sign = read_sign(flow.locate(1))
    assert sign is not None
    write_sign(flow.locate(1), replace(sign, at=flow.now))
    flow.set_lease(1, flow.now + 20)


def see(flow: Flow) -> Beside:
    return Beside(flow.places, flow.story, look_at(flow.places, flow.story, flow.now))


def test_a_worker_that_joins_is_moved_to_where_the_plan_is_strictly_better(
    dag: DAG, tries: Tries, tmp_path: Path, wide: Any
):
    launch = declare(dag, tmp_path)
    flow = run_on(tries, launch, "w1")
    wide(w1=(4, 0), w2=(16, 16))
    move = look_twice(flow)
    assert move is not None
    assert (move.epoch, move.source, move.target, move.among) == (1, ON_W1, ON_W2, ("w1", "w2"))
    ask_to_move(tries, launch)
    assert tries.run(launch, "run 2") == 2
    old, new = read_manifests(tries)
    assert (old.workers, new.workers, new.fingerprint) == (ON_W1, ON_W2, old.fingerprint)
    assert len(flow.started) == 2, "it has an application of its own"
    record = flow.story.epochs[2].record
    assert record.x_why.startswith("epoch 1 moves from w1 to w2: ")
    assert record.x_why in tell_story(flow.story)


def test_a_later_try_of_the_run_that_has_moved_it_moves_it_no_further(
    dag: DAG, tries: Tries, tmp_path: Path, wide: Any
):
    launch = declare(dag, tmp_path)
    run_on(tries, launch, "w1")
    wide(w1=(4, 0), w2=(16, 16))
    ask_to_move(tries, launch)
    assert tries.run(launch, "run 2") == 2
    assert tries.run(launch, "run 2") == 2
    assert list(tries.flow.story.epochs) == [1, 2]


@pytest.mark.parametrize(
    "cores",
    [{"w1": (4, 0), "w2": (4, 4)}, {"w1": (4, 0), "w2": (16, 1)}, {"w1": (4, 4)}],
    ids=["equal", "full", "gone"],
)
def test_a_run_that_finds_it_no_better_off_leaves_it_where_it_is(
    dag: DAG, tries: Tries, tmp_path: Path, wide: Any, cores: dict[str, tuple[int, int]]
):
    """What was seen twice may have gone since."""
    launch = declare(dag, tmp_path)
    flow = run_on(tries, launch, "w1")
    wide(**cores)
    assert look_twice(flow) is None
    ask_to_move(tries, launch)
    assert execute_stream(tries.open(launch, "run 2"))["followed_by"] == "run 1"
    assert list(flow.story.epochs) == [1]


def test_a_person_may_ask_for_it(dag: DAG, tries: Tries, tmp_path: Path, wide: Any):
    """As with ``schedule=None``."""
    launch = declare(dag, tmp_path)
    run_on(tries, launch, "w1")
    wide(w1=(4, 0), w2=(16, 16))
    conf = {"dagsched": {"switch": "move"}}
    assert tries.run(launch, "run 2", conf) == 2
    assert tries.run(launch, "run 2", conf) == 2, "its own is not moved again"


def test_what_runs_without_executors_is_not_moved(dag: DAG, tries: Tries, tmp_path: Path, wide: Any):
    """It could not end the windows that are its own."""
    flow = run_on(tries, declare(dag, tmp_path))
    wide(w1=(4, 0), w2=(16, 16))
    assert look_twice(flow) is None


def test_one_whose_graphs_run_one_after_another_is_moved_by_a_person_alone(
    dag: DAG, tries: Tries, tmp_path: Path, wide: Any
):
    launch = declare(dag, tmp_path, overlap="sequential")
    flow = run_on(tries, launch, "w1")
    wide(w1=(4, 0), w2=(16, 16))
    assert look_twice(flow) is None
    assert tries.run(launch, "run 2", {"dagsched": {"switch": "move"}}) == 2
    assert flow.story.epochs[2].record.x_overlap == "sequential"


def test_a_manager_that_does_not_answer_moves_nothing(
    dag: DAG, tries: Tries, tmp_path: Path, wide: Any, monkeypatch: pytest.MonkeyPatch
):
    flow = run_on(tries, declare(dag, tmp_path), "w1")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1:9"}))
    assert look_twice(flow) is None


def test_changed_code_in_an_application_of_its_own_keeps_to_where_the_state_is(
    dag: DAG, tries: Tries, tmp_path: Path, wide: Any
):
    """Both workers have room, and the first is level enough."""
    wide(w1=(16, 16), w2=(16, 16))
    flow = run_on(tries, declare(dag, tmp_path), "w1")
    before = read_private_manifest(flow.locate(1), flow.work_dir).workers
    tries.run(change(tmp_path, driver_memory="3g"), "run 2")
    assert [each.workers for each in read_manifests(tries)] == [before, before]
