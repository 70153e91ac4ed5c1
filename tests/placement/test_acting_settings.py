"""What the table says of settings: each acts with the policies it names, and with no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.cli import BAD_INPUT, FINE, main
from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.model.state import Assignment, Lag, State
from airflow_dagsched.placement.acting_settings import ACTS_WITH
from airflow_dagsched.placement.policy import POLICIES
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.settings import DEFAULTS
from airflow_dagsched.plan.settings_file import SHARED, parse_placement_settings

MIB = 2**20
TOLD: dict[str, tuple[Any, ...]] = {
    "disk_padding_mb": (7.0,),
    "cpu_padding": (3.0,),
    "instance_cores": (3.0,),
    "instances_per_container": (1,),
    "max_instances_per_worker": (4,),
    "container_memory_mb": (600.0, 1200.0),
    "container_disk_mb": (2.0, 5.0),
    "container_cpu": (1.0, 2.0),
    "container_size": ("offered",),
    "barriers": (True,),
    "worker_bandwidth_mb_s": (0.5,),
    "worker_latency_s": (30.0,),
    "datanode_bandwidth_mb_s": (0.5,),
    "datanode_latency_s": (50.0,),
    "rack_share": (0.0, 1.0),
    "moved_mb_cost": (0.0, 100.0),
    "strategy": ("seed",),
    "balance_factor": (5,),
    "acceptable_recovery_lag": (1e6,),
    "num_standbys": (1,),
    "max_warmups": (0,),
    "lag_unit": ("bytes",),
    "spread_tags": (("zone",),),
    "follow_up_s": (5.0,),
}


def worker(at: int, cores: int, **fields: Any) -> Worker:
    return Worker(id=f"w{at}", host=f"h{at}", cores=cores, memory_mb=cores * 2000, **fields)


CLUSTER = Cluster(
    manager="standalone",
    workers=(
        worker(0, 8, tags={"zone": "a"}, rack="r0"),
        worker(1, 8, tags={"zone": "a"}, rack="r0", cost=2.0),
        worker(2, 4, tags={"zone": "b"}, rack="r1", disk_mb=30),
    ),
)
BATCH = Dataflow(
    name="b",
    steps=(
        Step(id="a", parallelism=4, runtime_s=10, disk_mb=2),
        Step(id="b", parallelism=6, runtime_s=5),
        Step(id="c", parallelism=2, runtime_s=7, memory_mb=900),
    ),
    channels=(Channel(src="a", dst="b", bytes=900 * MIB), Channel(src="a", dst="c", bytes=9 * MIB)),
)
STATEFUL = Dataflow(
    name="s",
    steps=(Step(id="s", parallelism=6, mode="streaming", stateful=True, memory_mb=200, state_mb=300),),
)
IDS = [f"s/{at}" for at in range(6)]
STATE = State(
    lags=tuple(Lag(instance=one, worker="w0", rows=0, running=True) for one in IDS)
    + tuple(Lag(instance=one, worker="w1", rows=500_000, bytes=5, seconds=9) for one in IDS),
    previous=Assignment(active=dict.fromkeys(IDS, "w0")),
)


def place(dataflow: Dataflow, policy: str, state: State, told: dict[str, Any]) -> bytes:
    run = Run(policy=Policy(policy, parse_placement_settings(DEFAULTS, told), state))
    try:
        return encode_value(plan(dataflow, CLUSTER, run=run))
    except DoesNotFit as refused:
        return str(refused).encode()


@pytest.mark.parametrize("name", [name for name, acting in ACTS_WITH.items() if name != "twister2_compatible"])
def test_a_setting_acts_with_no_policy_that_the_table_does_not_name(name: str) -> None:
    for policy in POLICIES.keys() - set(ACTS_WITH[name]):
        for dataflow, state in ((BATCH, State()), (STATEFUL, STATE)):
            before = place(dataflow, policy, state, {})
            assert all(place(dataflow, policy, state, {name: value}) == before for value in TOLD[name])


def test_the_table_knows_every_setting_of_its_own() -> None:
    assert ACTS_WITH.keys() <= set(PlacementSettings.__struct_fields__)
    refused = {"twister2_compatible", "step_parallelism"}
    assert TOLD.keys() | SHARED.keys() | refused == set(PlacementSettings.__struct_fields__)


@pytest.mark.parametrize("policy", ["", "cheapest", "high_availability"])
def test_the_command_refuses_what_nothing_comes_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    files = {"flow": json.loads(encode_value(BATCH)), "cluster": json.loads(encode_value(CLUSTER))}
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value))
    told = ["--placement", policy] if policy else []
    for name, values in TOLD.items():
        (tmp_path / "settings").write_text(json.dumps({name: values[0]}))
        paths = str(tmp_path / "flow"), "--cluster", str(tmp_path / "cluster"), "--settings", str(tmp_path / "settings")
        acts = bool(policy) and policy in ACTS_WITH.get(name, POLICIES)
        code, error = main(["plan", *paths, *told]), capsys.readouterr().err
        assert (code == BAD_INPUT) != acts, (name, code, error)
        assert acts or (f": {name}: " in error and error.count("\n") == 1)
    for lists in ({"apart": [["a"]]}, {"together": [["a", "a"]]}, {"apart": [[]]}):
        (tmp_path / "settings").write_text(json.dumps(lists))
        assert main(["plan", *paths, *told]) == BAD_INPUT
        assert "[0]: takes two steps or more" in capsys.readouterr().err
    (tmp_path / "settings").write_text(json.dumps(dict.fromkeys(SHARED, 3)))
    assert main(["plan", *paths, *told]) == FINE
