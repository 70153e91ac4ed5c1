"""The documents' worked examples, parsed and planned: each DAG file gives its document's answer. No Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.commands.bag import find_flows
from tests.seeds.answers import (
    COMPLETABLE,
    FOUR,
    KIP,
    ONE,
    SPILLED,
    THREE,
    TWISTER2,
    TWO,
    list_by_worker,
    named,
    place_clients,
    placed,
)

DAGS = Path(__file__).with_name("dags")
CLUSTER = Cluster(
    manager="standalone",
    workers=tuple(Worker(id=host, host=host, cores=2, memory_mb=2048) for host in (ONE, TWO, THREE, FOUR)),
)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PlannerHook:
    """Of a Master that does not answer, so that the declared cluster counts."""
    declared = json.loads(encode_value(CLUSTER))
    extra = {"cluster": declared, "if_unreachable": "declared", "master_ui": "http://127.0.0.1:9"}
    raw = {"conn_type": "spark", "host": "spark://127.0.0.1:7077", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(raw))
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    monkeypatch.setenv("SEEDS_HOME", str(tmp_path))
    (tmp_path / "pair.json").write_bytes(encode_value(replace(CLUSTER, workers=CLUSTER.workers[:2])))
    return PlannerHook("cluster")


def plan_all(file: str, hook: PlannerHook) -> dict[str, Plan]:
    """Dataflow -> its plan, which the checker accepts."""
    plans = {}
    for flow in find_flows(str(DAGS / f"{file}.py")):
        plans[str(flow.group_id)] = planned = hook.plan(flow)
        assert hook.check(planned) == ()
    return plans


def test_twister2s_two_tasks_on_two_containers(hook: PlannerHook) -> None:
    assert {name: placed(*planned.groups) for name, planned in plan_all("twister2", hook).items()} == TWISTER2


def test_the_completable_subgraphs(hook: PlannerHook) -> None:
    plans = plan_all("completable", hook)
    assert {name: named(planned) for name, planned in plans.items()} == COMPLETABLE
    assert {name: [(one.src, one.dst) for one in planned.spills] for name, planned in plans.items()} == SPILLED


def test_a_dag_with_state_is_refused(hook: PlannerHook) -> None:
    """Of a dataflow that ends no step keeps state from run to run: said when the file is parsed."""
    with pytest.raises(InvalidInput, match=r"stateful=True needs SparkDataflow\(..., mode='streaming'\)"):
        plan_all("kip441", hook)


@pytest.mark.parametrize("name", KIP)
def test_kips_assignments(name: str) -> None:
    """Active, and warming up: a container of copies alone asks for no core."""
    planned, _ = place_clients(KIP[name], CLUSTER)
    assert planned.assignment is not None
    assert list_by_worker(planned.assignment.active) == KIP[name].active
    assert planned.assignment.warmup == KIP[name].warming
    (group,) = planned.groups
    assert {box.worker for box in group.containers if box.cores} == set(KIP[name].active)
