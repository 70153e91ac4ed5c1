"""Channels of a DAG as they are: buffered behind a table, and with what their author says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, task
from msgspec.structs import replace

from airflow_dagsched import SparkDataflow, SparkSqlStep, Table, channel
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.grouping.coarsest import find_groups
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.provider.clusters.planner_hook import list_dataflows

ROOT = Path(__file__).parents[2]


@task.spark_step(writes=Table("/data/orders"))
def orders(spark: Any) -> Any:
    return spark.range(3)


@task.spark_step
def clean(orders: Any) -> Any:
    return orders


@task.spark_step(writes=Table("/data/report"))
def report(clean: Any) -> Any:
    return clean


@task.spark_step
def joined(left: Any, right: Any, bytes: int = 0) -> Any:  # noqa: A002 - a parameter of the author's own
    return left


@task.spark_step
def merged(parts: list[Any]) -> Any:
    return parts[0]


@task
def ordinary() -> int:
    return 1


def channels_of(flow: SparkDataflow) -> dict[tuple[str, str], Channel]:
    return {(one.src, one.dst): one for one in flow.dataflow.channels}


def test_rows_behind_a_table_are_read_from_it(dag: DAG) -> None:
    """orders(writes) ~~> clean ══> report(writes): and one launch, as without a word on tables"""
    with SparkDataflow("f") as flow:
        report(clean(orders()))
    found = channels_of(flow)
    assert (found["orders", "clean"].kind, found["clean", "report"].kind) == ("buffered", "pipelined")
    assert [launch.group.steps for launch in flow.launches()] == [("orders", "clean", "report")]
    assert flow.grouping.spills == ()
    written = {step.id: step.writes for step in flow.dataflow.steps if step.writes}
    assert written == {"orders": ("/data/orders",), "report": ("/data/report",)}, "who plans several looks for readers"


def test_limits_cut_behind_a_table_first(dag: DAG) -> None:
    """source ══> kept(writes) ~~> clean, two steps an application: between the last two a cut spills nothing"""
    with SparkDataflow("f", max_steps_per_group=2) as flow:

        @task.spark_step
        def source(spark: Any) -> Any:
            return spark.range(3)

        @task.spark_step(writes=Table("/data/kept"))
        def kept(source: Any) -> Any:
            return source

        clean(kept(source(), bytes=10**6), bytes=10**9)
    assert [launch.group.steps for launch in flow.launches()] == [("source", "kept"), ("clean",)]
    assert flow.grouping.spills == ()


def test_what_the_author_says_of_a_channel(dag: DAG) -> None:
    with SparkDataflow("f") as flow:
        rows = orders()
        tidy = clean(rows, bytes=5, routing="single")
        joined(tidy, channel(rows, bytes=6, routing="broadcast"))
        SparkSqlStep("best", sql="select 1", inputs={"c": tidy}, bytes={"c": 7}, routing="forward")
        merged([channel(tidy, kind="buffered"), rows])
    found = channels_of(flow)
    assert found["orders", "clean"] == Channel(src="orders", dst="clean", kind="buffered", bytes=5, routing="single")
    assert found["orders", "joined"].routing == "broadcast"
    assert found["clean", "best"] == Channel(src="clean", dst="best", bytes=7, routing="forward")
    assert (found["clean", "merged"].kind, found["orders", "merged"].bytes) == ("buffered", 0)


def test_what_is_said_around_what_is_said_counts_too(dag: DAG) -> None:
    with SparkDataflow("f") as flow:
        clean(channel(channel(orders(), bytes=6), routing="broadcast"))
    assert [(one.bytes, one.routing) for one in flow.dataflow.channels] == [(6, "broadcast")]


def test_a_parameter_of_the_function_s_own_is_its_own(dag: DAG) -> None:
    with SparkDataflow("f") as flow:
        rows = orders()
        joined(rows, clean(rows), bytes=3)
    assert flow.steps["joined"].arguments["bytes"] == 3
    assert {one.bytes for one in flow.dataflow.channels} == {0}


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no size": (lambda rows: clean(rows, bytes="1g"), "bytes must be a whole number of at least 1, not '1g'"),
    "nothing": (lambda rows: clean(rows, bytes=0), "bytes must be a whole number of at least 1, not 0"),
    "no routing": (lambda rows: clean(rows, routing="fast"), "routing 'fast' is none of forward, shuffle"),
    "no kind": (lambda rows: clean(channel(rows, kind="fast")), "kind 'fast' is none of pipelined, buffered"),  # type: ignore[arg-type]
    "of which": (
        lambda rows: joined(rows, clean(rows), routing="single"),
        r"routing: the step has 2 inputs; say of which, routing=\{'parameter': 'single'\}",
    ),
    "no such input": (lambda rows: clean(rows, bytes={"left": 1}), "bytes: 'left' takes no step's rows; orders does"),
    "several": (lambda rows: merged([rows, clean(rows)], bytes=1), r"'parts' takes 2 datasets; put channel\(...\)"),
    "twice": (lambda rows: clean(channel(rows, bytes=1), bytes=2), "bytes: said twice of one channel, 1 and 2"),
    "twice around": (
        lambda rows: clean(channel(channel(rows, bytes=3), bytes=4)),
        "bytes: said twice of one channel, 3 and 4",
    ),
    "no rows": (lambda rows: clean(channel(ordinary(), bytes=1)), "bytes: of a channel, but .* is the rows of no step"),
    "a table's": (
        lambda rows: clean(channel(rows, kind="pipelined")),
        "'orders' writes a table, and its rows are read",
    ),
    "forward": (
        lambda rows: SparkSqlStep("c", sql="select 1", inputs=[rows], parallelism=2, routing="forward"),
        "'forward' needs equal parallelism: 'orders' has 1, 'c' 2",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_of_a_channel_is_refused(dag: DAG, case: str) -> None:
    call, rule = WRONG[case]
    with pytest.raises(InvalidInput, match=rf"DAG 'sales', step '(f\.)?\w+'.*{rule}"), SparkDataflow("f"):
        call(orders())


def workers(*names: str) -> Cluster:
    return Cluster(
        manager="standalone", workers=tuple(Worker(id=name, host=name, cores=2, memory_mb=8192) for name in names)
    )


def test_pinned_steps_are_on_their_workers_alone(dag: DAG) -> None:
    """clean on w2, which no step without a pin shares: Spark sends tasks to any executor that it has"""
    with SparkDataflow("f", cluster=workers("w1", "w2", "w3")) as flow:

        @task.spark_step(pinned=["w2"], parallelism=4, runtime_s=10)
        def placed(orders: Any) -> Any:
            return orders

        report(placed(orders()))
    made = plan(flow.dataflow, workers("w1", "w2", "w3"))
    on = {group.steps: {box.worker for box in group.containers} for group in made.groups}
    assert on[("placed",)] == {"w2"}
    assert [launch.group.steps for launch in flow.launches()] == [("orders",), ("placed",), ("report",)]


def test_a_cut_behind_a_table_spills_nothing(dag: DAG) -> None:
    """orders ~~> placed, 10 GB: read from its table. placed ══> report, 1 MB: a spill. A plan and the checker agree."""
    with SparkDataflow("f", cluster=workers("w1", "w2")) as flow:

        @task.spark_step(isolate=True)
        def placed(orders: Any) -> Any:
            return orders

        report(placed(orders(), bytes=10**10), bytes=10**6)
    made = plan(flow.dataflow, workers("w1", "w2"))
    assert [(spill.src, spill.bytes) for spill in made.spills] == [("placed", 10**6)]
    assert made.groups[0].time.write == 0 < made.groups[1].time.write
    assert check(made, flow.dataflow, workers("w1", "w2")) == ()


@pytest.mark.parametrize("folder", ["dags", "tests/system/dags", "tests/dags/files"])
def test_tables_split_no_launch_task_of_a_dag(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launch tasks of the DAGs that there are: as if their rows were all handed over."""
    monkeypatch.syspath_prepend(str(ROOT / folder))
    bag = DagBag(ROOT / folder)
    flows = [flow for name in bag.dag_ids for flow in list_dataflows(bag.dags[name])]
    assert flows
    for flow in flows:
        spec = flow.spec
        if spec.cluster is None and not spec.task_runtimes:
            told = spec.graph.dataflow
            plain = replace(told, channels=tuple(replace(one, kind="pipelined") for one in told.channels))
            assert flow.grouping.groups == find_groups(plain, spec.settings).groups
