"""Which step is in whose launch task: what the author says, and what a declared cluster makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG, task
from msgspec.structs import replace

from airflow_dagsched import SparkDataflow
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.provider.clusters.planner_hook import list_dataflows


@task.spark_step(runtime_s=60, memory="1g")
def orders(spark: Any) -> Any:
    return spark.range(3)


@task.spark_step(runtime_s=60, memory="1g")
def clean(orders: Any) -> Any:
    return orders


@task.spark_step(runtime_s=60, memory="1g")
def report(clean: Any) -> Any:
    return clean


def groups(**settings: Any) -> list[str]:
    """Of orders == clean == report."""
    with SparkDataflow("f", **settings) as flow:
        report(clean(orders()))
    return [" ".join(launch.group.steps) for launch in flow.launches()]


def one_worker(**fields: Any) -> Cluster:
    worker = Worker(id="w1", host="w1", **{"cores": 4, "memory_mb": 8192, **fields})
    return Cluster(manager="standalone", workers=(worker,))


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, ["orders clean report"]),
        ({"apart": [["clean", "report"]]}, ["orders clean", "report"]),
        ({"max_steps_per_group": 1}, ["orders", "clean", "report"]),
        ({"together": [["orders", "clean", "report"]]}, ["orders clean report"]),
        ({"cluster": one_worker()}, ["orders clean report"]),
    ],
)
def test_the_author_s_word_counts(dag: DAG, settings: dict[str, Any], found: list[str]) -> None:
    assert groups(**settings) == found


def test_failures_to_expect_cut_without_a_cluster_too(dag: DAG) -> None:
    """Three steps of an hour, and a failure an hour: two of three are not repeated."""
    hour = {"runtime_s": 3600}
    with SparkDataflow("f", failures_per_hour=1.0) as flow:
        report.override(**hour)(clean.override(**hour)(orders.override(**hour)()))
    assert [" ".join(launch.group.steps) for launch in flow.launches()] == ["orders", "clean", "report"]


def test_failures_of_runtimes_that_nobody_says_are_an_error(dag: DAG) -> None:
    @task.spark_step
    def lone(spark: Any) -> Any:
        return spark.range(3)

    told = r"failures_per_hour: needs runtime_s= of its steps, or a plan file"
    with pytest.raises(InvalidInput, match=told), SparkDataflow("f", failures_per_hour=1.0):
        lone()


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"apart": [["clean", "nope"]]}, "nope"),
        ({"max_steps_per_group": 0}, "max_steps_per_group: Expected `int` >= 1"),
        ({"failures_per_hour": -1.0}, "failures_per_hour: Expected `float` >= 0"),
        ({"apart": [["orders", "clean"]], "together": [["orders", "clean"]]}, "together"),
    ],
)
def test_what_cannot_be_is_refused_at_parse(dag: DAG, settings: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule) as refused:
        groups(**settings)
    assert str(refused.value).startswith("DAG 'sales', dataflow 'f'")


def test_a_step_larger_than_the_declared_cluster_is_refused_at_parse(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"dataflow 'f': cluster: .*needed .*, available 512 MiB"):
        groups(cluster=one_worker(memory_mb=512))


def test_who_is_on_the_declared_cluster_just_now_changes_no_task(dag: DAG) -> None:
    assert groups(cluster=one_worker(free=Free(cores=0, memory_mb=0))) == ["orders clean report"]


def test_a_long_task_does_not_hold_the_steps_that_need_not_wait_for_it(dag: DAG) -> None:
    """
    orders ══> clean ══> report      without a word: one application, after three hours
                 sensor ──┘          three hours are worth a start: {orders clean}, {report}
    """

    def made(name: str, **settings: Any) -> list[str]:
        @task(task_id=f"sensor_of_{name}")
        def sensor() -> None: ...

        with SparkDataflow(name, **settings) as flow:
            last = report(clean(orders()))
        sensor() >> last
        return [" ".join(launch.group.steps) for launch in flow.launches()]

    assert made("a") == ["orders clean report"]
    assert made("b", task_runtimes={"sensor_of_b": 10_800}) == ["orders clean", "report"]


@pytest.mark.parametrize(
    ("manager", "found"), [("standalone", ["orders clean", "report"]), ("kubernetes", ["orders clean report"])]
)
def test_a_start_is_priced_as_warm_where_an_application_can_stay(dag: DAG, manager: Any, found: list[str]) -> None:
    """
    orders ══> clean ══> report      four seconds of waiting are worth a warm start, and no cold one
                 sensor ──┘
    """

    @task
    def sensor() -> None: ...

    cluster = replace(one_worker(), manager=manager)
    with SparkDataflow("f", warm="10 minutes", cluster=cluster, task_runtimes={"sensor": 4}) as flow:
        last = report(clean(orders()))
    sensor() >> last
    assert [" ".join(launch.group.steps) for launch in flow.launches()] == found


def test_every_dataflow_of_a_dag_is_seen(dag: DAG) -> None:
    """Also by Airflow, which keeps the task groups it finds when it is first asked for them."""
    names = ["north", "south", "west"]
    for name in names:
        with SparkDataflow(name):
            orders()
    assert [flow.group_id for flow in list_dataflows(dag)] == names
    assert set(names) <= set(dag.task_group_dict)
