"""Room for a group on a cluster that others launch on, too; the Master is played by recordings."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow
from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation.levels import LEVELS
from airflow_dagsched.launch.escalation.split_group import RunsInParts
from airflow_dagsched.launch.managers.kubernetes.objects import Toleration
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.runtime import allocation
from airflow_dagsched.provider.runtime.allocation import build_executor_pod, size_application
from airflow_dagsched.provider.submission.input_pruning import Pruning
from airflow_dagsched.provider.wiring.launch import LaunchOperator
from tests.testbed.answers import Said, answering

RECORDED = Path(__file__).parents[1] / "launch" / "recorded" / "master.json"
TRY = LEVELS[0]


@task.spark_step(cores=4)
def orders(spark: Any) -> Any:
    return spark.range(3)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[PlannerHook]:
    """Of a Master with three workers: 4, 1 and 4 cores free; the one in slot 4 is leaving."""
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    with answering({"/json/": Said(RECORDED.read_bytes())}) as (url, _):
        raw = {"conn_type": "spark", "host": "spark://m:7077", "extra": {"master_ui": url}}
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(raw))
        yield PlannerHook("cluster")


@pytest.fixture
def launch(dag: DAG, tmp_path: Path) -> Callable[..., LaunchOperator]:
    """``launch(name, conf)``: of a dataflow with one step of four cores."""

    def made(name: str, conf: dict[str, str] | None = None) -> LaunchOperator:
        with SparkDataflow(name, conn_id="cluster", work_dir=str(tmp_path), conf=conf or {}) as flow:
            orders()
        return flow.launches()[0]

    return made


def room_for(launch: LaunchOperator, hook: PlannerHook) -> AbstractContextManager[allocation.Allocation]:
    return allocation.allocate_room(launch.spec, hook, TRY, launch.group.steps, Pruning(launch.flow.graph.dataflow))


def workers(room: allocation.Allocation) -> list[str]:
    return [box.worker for box in room.chosen.group.containers]


def test_settings_keep_executors_on_the_planned_worker(
    launch: Callable[..., LaunchOperator], hook: PlannerHook, tmp_path: Path
) -> None:
    """The author's own settings win."""
    mine = launch("f", {"spark.executor.memory": "3g"})
    with room_for(mine, hook) as room:
        conf = size_application(mine.flow.conf, hook, room.chosen, TRY, tmp_path).conf
    assert workers(room) == ["10.0.0.11"]
    asked = {name for name in conf if "resource" in name}
    assert asked == {f"spark.executor.resource.not_{slot}.amount" for slot in (2, 3)}
    assert (conf["spark.cores.max"], conf["spark.executor.memory"]) == ("4", "3g")


def test_launches_at_one_moment_get_different_workers_and_the_third_waits(
    launch: Callable[..., LaunchOperator], hook: PlannerHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """first ── w11; second ── w13; w12 has one core only; the third takes w13 when the second has ended"""
    with room_for(launch("a"), hook) as first, ExitStack() as second:
        assert workers(first) == ["10.0.0.11"]
        assert workers(second.enter_context(room_for(launch("b"), hook))) == ["10.0.0.13"]
        waits: list[float] = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            second.close()

        monkeypatch.setattr(allocation, "time", SimpleNamespace(time=time.time, sleep=wait))
        with room_for(launch("c"), hook) as third:
            assert (workers(third), waits) == (["10.0.0.13"], [allocation.ASK_AGAIN_S])


def test_what_was_reserved_is_free_a_moment_after_the_start(
    launch: Callable[..., LaunchOperator], hook: PlannerHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From then on the Master counts it (here it doesn't: it is a recording)."""
    now = 1000.0
    monkeypatch.setattr(allocation, "time", SimpleNamespace(time=lambda: now))
    with room_for(launch("a"), hook) as room:
        room.note_start()
        now = 1000.0 + allocation.SETTLE_S - 0.1
        with room_for(launch("b"), hook) as early:
            assert workers(early) == ["10.0.0.13"]
        now = 1000.0 + allocation.SETTLE_S
        with room_for(launch("c"), hook) as late:
            assert workers(late) == ["10.0.0.11"]


def test_a_resource_that_nobody_offers(
    launch: Callable[..., LaunchOperator], hook: PlannerHook, tmp_path: Path
) -> None:
    mine = launch("f", {"spark.executor.resource.fpga.amount": "1"})
    with room_for(mine, hook) as room, pytest.raises(DoesNotFit, match="custom resource 'fpga'"):
        size_application(mine.flow.conf, hook, room.chosen, TRY, tmp_path)


def test_an_author_s_pod_template_and_the_connection_s_tolerations(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("spec:\n  tolerations: [{key: spot, operator: Exists}]\n  priority: 1\n")
    pod = build_executor_pod(str(tmp_path / "pod.yaml"), [Toleration("team", "Equal", "spark")])
    assert [one["key"] for one in pod["spec"]["tolerations"]] == ["spot", "team"]
    assert pod["spec"]["priority"] == 1
    assert build_executor_pod(None, [])["kind"] == "Pod"


def test_parts_run_now_where_waiting_would_hardly_be_quicker(
    dag: DAG, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three GB are free of eight on each worker: a and b would need four, one after the other either of them two."""
    recorded = json.loads(RECORDED.read_bytes())
    for worker in recorded["workers"]:
        worker |= {"coresused": 0, "coresfree": 4, "memoryused": 5000, "memoryfree": 3192}
    with answering({"/json/": Said(json.dumps(recorded).encode())}) as (url, _):
        raw = {"conn_type": "spark", "host": "spark://m:7077", "extra": {"master_ui": url}}
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(raw))
        with SparkDataflow("f", conn_id="cluster", work_dir=str(tmp_path)) as flow:

            @task.spark_step(cores=1, memory="2000m", runtime_s=300)
            def small(rows: Any) -> Any:
                return rows

            small.override(task_id="b")(small.override(task_id="a")(orders.override(runtime_s=300)()))
        (launch,) = flow.launches()
        assert isinstance(launch, LaunchOperator)
        with (
            pytest.raises(RunsInParts, match="cut into 2 applications") as found,
            room_for(launch, PlannerHook("cluster")),
        ):
            pass
    assert found.value.cut.parts in [(("orders", "a"), ("b",)), (("orders",), ("a", "b"))]
