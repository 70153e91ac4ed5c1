"""Policies as an author names them: for a dataflow, for a step, by name or by a class of the author's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.escalation.levels import LEVELS
from airflow_dagsched.placement.policies.built_in import RoundRobin
from airflow_dagsched.plan.checking import check
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.runtime.allocation import allocate_room, size_application
from airflow_dagsched.provider.submission.input_pruning import Pruning

WORKERS = [{"id": f"w{at}", "host": f"h{at}", "cores": 4, "memory_mb": 8000} for at in (1, 2, 3, 4)]


class Mine(RoundRobin):
    """A user's own policy."""


class NoPolicy:
    """Places nothing."""


@task.spark_step(parallelism=8)
def wide(spark: Any) -> Any:
    return spark.range(3)


@task.spark_step
def narrow(wide: Any) -> Any:
    return wide


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PlannerHook:
    """Of a Master that does not answer, so that the declared cluster counts."""
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    cluster = {"manager": "standalone", "workers": WORKERS}
    extra = {"cluster": cluster, "if_unreachable": "declared", "master_ui": "http://127.0.0.1:9"}
    raw = {"conn_type": "spark", "host": "spark://127.0.0.1:7077", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(raw))
    return PlannerHook("cluster")


def used(flow: SparkDataflow, hook: PlannerHook, at: int = 0) -> list[str]:
    """Workers of the containers that a launch would ask for."""
    launch = flow.launches()[at]
    with allocate_room(launch.spec, hook, LEVELS[0], launch.group.steps, Pruning(flow.dataflow)) as room:
        chosen, made = room.chosen, room.chosen.planned
        assert check(made.plan, made.dataflow, made.cluster, made.settings) == ()
        return sorted({box.worker for box in chosen.group.containers})


@pytest.mark.parametrize(
    ("placement", "workers"),
    [
        ("auto", ["w1", "w2"]),
        ("first_fit", ["w1", "w2"]),
        ("round_robin", ["w1", "w2", "w3", "w4"]),
        (f"{__name__}.Mine", ["w1", "w2", "w3", "w4"]),
    ],
)
def test_a_launch_places_by_the_policy_of_its_dataflow(
    dag: DAG, hook: PlannerHook, tmp_path: Path, placement: str, workers: list[str]
) -> None:
    """Eight cores wanted on four workers of four."""
    with SparkDataflow("f", conn_id="cluster", work_dir=str(tmp_path), placement=placement) as flow:
        wide()
    assert used(flow, hook) == workers


def test_settings_of_the_policy_count(dag: DAG, hook: PlannerHook, tmp_path: Path) -> None:
    """Two instances of the step on each worker, at most."""
    told = {"max_instances_per_worker": 2}
    with SparkDataflow(
        "f", conn_id="cluster", work_dir=str(tmp_path), placement="first_fit", placement_settings=told
    ) as flow:
        wide()
    assert used(flow, hook) == ["w1", "w2", "w3", "w4"]


def test_a_launch_asks_for_all_that_its_workers_offer(dag: DAG, hook: PlannerHook, tmp_path: Path) -> None:
    """One core would do."""
    told = {"container_size": "offered"}
    with SparkDataflow(
        "f", conn_id="cluster", work_dir=str(tmp_path), placement="first_fit", placement_settings=told
    ) as flow:
        narrow(wide.override(parallelism=1)())
    launch = flow.launches()[0]
    with allocate_room(launch.spec, hook, LEVELS[0], launch.group.steps, Pruning(flow.dataflow)) as room:
        conf = size_application(flow.spec.conf, hook, room.chosen, LEVELS[0], tmp_path).conf
    asked = [conf[f"spark.{name}"] for name in ("executor.cores", "executor.memory", "cores.max")]
    assert asked == ["4", "8000m", "4"]


def test_steps_of_different_policies_run_in_different_applications(dag: DAG, hook: PlannerHook, tmp_path: Path) -> None:
    """wide goes by a policy of its own, narrow by the dataflow's."""
    with SparkDataflow("f", conn_id="cluster", work_dir=str(tmp_path), placement="first_fit") as flow:
        narrow(wide.override(placement="round_robin")())
    assert [launch.group.steps for launch in flow.launches()] == [("wide",), ("narrow",)]
    assert (len(used(flow, hook, 0)), len(used(flow, hook, 1))) == (4, 1)


def test_a_step_that_names_the_policy_of_its_dataflow_shares_its_application(dag: DAG, tmp_path: Path) -> None:
    with SparkDataflow("f", work_dir=str(tmp_path), placement="first_fit") as flow:
        narrow(wide.override(placement="first_fit")())
    assert [launch.group.steps for launch in flow.launches()] == [("wide", "narrow")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"placement": "nearest"}, "dataflow 'f': placement: no policy is called 'nearest'"),
        ({"placement": "no.such.Policy"}, "dataflow 'f': placement: no policy can be made of 'no.such.Policy'"),
        ({"placement": f"{__name__}.NoPolicy"}, "is no policy: it lacks initialize or schedule"),
        ({"placement_settings": {"ram_padding_mb": -1}}, "dataflow 'f': ram_padding_mb: Expected `float` >= 0"),
        ({"placement_settings": {"nonsense": 1}}, "dataflow 'f': nonsense: unknown field"),
    ],
)
def test_what_is_no_policy_is_one_error_at_parse(dag: DAG, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        SparkDataflow("f", **arguments)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("policy", "told", "message"),
    [
        ("cheapest", {"num_standbys": 1}, "num_standbys: acts with placement high_availability or auto, and not with"),
        ("first_fit", {"cpu_padding": 1}, "cpu_padding: is for Twister2's own placements, of which no plan is made"),
        ("auto", {"twister2_compatible": True}, "twister2_compatible: is for Twister2's own placements"),
    ],
)
def test_a_setting_that_nothing_comes_of_is_refused(dag: DAG, policy: str, told: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused, SparkDataflow("f", placement=policy, placement_settings=told):
        wide()
    assert message in str(refused.value)


def test_a_setting_that_acts_with_the_policy_of_a_step_is_taken(dag: DAG) -> None:
    with SparkDataflow("f", placement="round_robin", placement_settings={"rack_share": 0.1}) as flow:
        narrow(wide.override(placement="data_locality")())
    assert flow.declared.placement_settings == {"rack_share": 0.1}


@pytest.mark.parametrize("lists", [{"apart": [["wide"]]}, {"together": [["wide", "wide"]]}, {"apart": [[]]}])
def test_a_list_of_fewer_than_two_steps_is_refused(dag: DAG, lists: Any) -> None:
    with (
        pytest.raises(InvalidInput, match="takes two steps or more: nothing comes of fewer"),
        SparkDataflow("f", **lists),
    ):
        wide()


def test_a_step_with_no_policy_is_named(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"step 'f\.wide': placement: no policy is called 'x'"), SparkDataflow("f"):
        wide.override(placement="x")()
