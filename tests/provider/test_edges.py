"""How launch tasks are tied into the author's DAG."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import BranchPythonOperator, ShortCircuitOperator
from airflow.sdk import DAG, TaskGroup, task
from airflow.serialization.serialized_objects import DagSerialization

from airflow_dagsched import SparkDataflow, SparkSqlStep
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.provider.mirrors.pools import MIRROR_POOL as POOL

DAY = timedelta(days=1)


@task.spark_step
def rows(spark, above=None):
    return spark.range(3)


@task
def count(rows):
    return rows["rows"]


def step(name: str, *above: object) -> object:
    return rows.override(task_id=name)(*above)


def edges(dag: DAG) -> set[str]:
    return {f"{t.task_id} > {below}" for t in dag.tasks for below in t.downstream_task_ids}


WITHIN_FETCH_AND_PUBLISH = {
    "fetch > f.launch",
    "fetch > f.launch_inputs",
    "f.launch_inputs > f.launch_started",
    "f.launch > f.launch_started",
    "f.launch > f.a",
    "f.launch_started > f.a",
    "f.launch_started > f.b",
    "f.a > f.b",
    "f.b > publish",
}


def test_one_group(dag: DAG) -> None:
    """
    fetch -> launch ----------------------> a* -> b* -> publish
         |        `---v                     ^     ^
         `-> inputs -> launch_started ------+-----+
    """
    fetch, publish = EmptyOperator(task_id="fetch"), EmptyOperator(task_id="publish")
    with SparkDataflow("f") as flow:
        a = step("a")
        b = step("b", a)
    fetch >> a
    b >> publish
    assert edges(dag) == WITHIN_FETCH_AND_PUBLISH
    assert [launch.task_id for launch in flow.launches()] == ["f.launch"]


def test_ordinary_task_between_steps_makes_two_groups(dag: DAG) -> None:
    """a* -> count -> b*: the second launch task waits for count, and for a, whose rows it reads."""
    with SparkDataflow("f") as flow:
        a = step("a")
        b = rows.override(task_id="b")(count(a))
        b.operator.set_upstream(a.operator)
    assert [launch.task_id for launch in flow.launches()] == ["f.launch_a", "f.launch_b"]
    assert {"f.count > f.launch_b", "f.launch_b > f.b", "f.a > f.launch_b"} <= edges(dag)


def test_a_branch_reaches_the_launch_task_through_a_gate(dag: DAG) -> None:
    """A task that skips what is below it must not skip the launch task."""
    choose = BranchPythonOperator(task_id="choose", python_callable=lambda: "f.a")
    with SparkDataflow("f"):
        choose >> step("a")
        choose >> step("b")
    gate = "f.launch_after_choose"
    assert {f"choose > {gate}", f"{gate} > f.launch", f"{gate} > f.launch_inputs"} <= edges(dag)
    assert not {"choose > f.launch", "choose > f.launch_inputs"} & edges(dag)
    assert dag.get_task("f.launch_after_choose").trigger_rule == "all_done"


def test_a_skipping_task_sees_the_authors_graph_alone(dag: DAG) -> None:
    """quit_task -> before -> a* -> d* <- c*: what it skips is a and d; c only shares their launch task."""
    quit_task = ShortCircuitOperator(task_id="quit_task", python_callable=lambda: False)
    before = EmptyOperator(task_id="before")
    with SparkDataflow("f"):
        a, c = step("a"), step("c")
        quit_task >> before >> a
        step("d", [a, c])
    assert {t.task_id for t in quit_task.get_flat_relatives(upstream=False)} >= {"f.c", "f.launch"}
    quit_task._pre_execute_hook({})
    assert {t.task_id for t in quit_task.get_flat_relatives(upstream=False)} == {"before", "f.a", "f.d"}


def test_mirrors_wait_for_their_launch_task_alone(dag: DAG) -> None:
    """
    early --> a* --> b* --> count --> d* <-- choose
    late  --^        ^                ^
    late  -----------+        c* -----+        each mirror is below the gate of its group; nothing else lets it go
    """
    early, late = EmptyOperator(task_id="early"), EmptyOperator(task_id="late")
    choose = BranchPythonOperator(task_id="choose", python_callable=lambda: "f.d")
    with SparkDataflow("f") as flow:
        a = step("a")
        b = step("b", a)
        c = step("c")
        d = rows.override(task_id="d")(count(b))
        c >> d
    [early, late] >> a
    late >> b
    choose >> d
    groups = {launch.task_id: {f"f.{name}" for name in launch.group.steps} for launch in flow.launches()}
    assert len(groups) > 1
    for launch, mirrors in groups.items():
        gate = dag.get_task(f"{launch}_started")
        above = dag.get_task(launch).upstream_task_ids
        assert gate.upstream_task_ids == {launch, *([f"{launch}_inputs"] if above else [])}
        assert gate.trigger_rule == ("one_done" if above else "always")
        assert not above or dag.get_task(f"{launch}_inputs").upstream_task_ids == above
        assert gate.start_trigger_args.trigger_kwargs == {"launch": launch}
        assert gate.downstream_task_ids == mirrors
        for mirror in mirrors:
            assert dag.get_task(mirror).upstream_task_ids <= {launch, gate.task_id, *mirrors}


def test_taken_out_edges_come_back(dag: DAG) -> None:
    """fetch -> a* -> b* -> late -> c*, where the edges below b are made after the with block"""
    fetch, late = EmptyOperator(task_id="fetch"), EmptyOperator(task_id="late")
    with SparkDataflow("f") as flow:
        a = step("a")
        b, c = step("b", a), step("c")
    fetch >> a
    b >> late >> c
    assert flow.graph.outside == {"a": ("fetch",), "b": (), "c": ("late",)}
    flow.hide_our_edges()
    assert edges(dag) == {"fetch > f.a", "f.a > f.b", "f.b > late", "late > f.c"}


def test_task_above_the_whole_dataflow(dag: DAG) -> None:
    """fetch >> flow means its root steps, before and after the with block."""
    fetch = EmptyOperator(task_id="fetch")
    with SparkDataflow("f") as flow:
        a = step("a")
        step("b", a)
    fetch >> flow >> EmptyOperator(task_id="publish")
    assert edges(dag) == WITHIN_FETCH_AND_PUBLISH


def test_task_above_the_dataflow_before_the_with_block(dag: DAG) -> None:
    """Edges on the still empty group hold for its steps too."""
    fetch, flow = EmptyOperator(task_id="fetch"), SparkDataflow("f")
    fetch >> flow
    with flow:
        step("a")
    assert {"fetch > f.launch", "fetch > f.launch_inputs", "f.launch_started > f.a"} <= edges(dag)


def test_late_edge_splits_a_group(dag: DAG) -> None:
    """An edge made after the with block counts as if it had been inside."""
    with SparkDataflow("f") as flow:
        a, b = step("a"), step("b")
    counted = count(a)
    counted >> b
    assert [launch.task_id for launch in flow.launches()] == ["f.launch_a", "f.launch_b"]
    gates = {"f.launch_a_started", "f.launch_b_started", "f.launch_b_inputs"}
    assert set(dag.task_dict) == {"f.a", "f.b", "count", "f.launch_a", "f.launch_b", *gates}


def test_nested_task_groups(dag: DAG) -> None:
    """A TaskGroup inside the dataflow is for the eye only."""
    with SparkDataflow("f") as flow:
        with TaskGroup("inner"):
            a = step("a")
        step("b", a)
    assert list(flow.steps) == ["inner.a", "b"]
    assert [launch.task_id for launch in flow.launches()] == ["f.launch"]


def test_sql_step_as_it_is_and_as_its_output(dag: DAG) -> None:
    """a -> worst -> best, once by the operator itself, once by ``.output``."""
    with SparkDataflow("f") as flow:
        worst = SparkSqlStep("worst", sql="select * from a", inputs=[step("a")])
        SparkSqlStep("best", sql="select * from worst", inputs=[worst])
        SparkSqlStep("last", sql="select * from worst", inputs=[worst.output])
    assert [(c.src, c.dst) for c in flow.dataflow.channels] == [("a", "worst"), ("worst", "best"), ("worst", "last")]
    assert {"f.worst > f.best", "f.worst > f.last"} <= edges(dag)


def test_mirrors_hold_no_slot(dag: DAG) -> None:
    """Whatever default_args say: no retries, no time-out, deferred without a worker, after serialization too."""
    dag.default_args = {"retries": 3, "pool": "spark", "queue": "big", "execution_timeout": DAY, "priority_weight": 9}
    with SparkDataflow("f", retries=2, pool="heavy"):
        step("a")
    again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    launch = again.get_task("f.launch")
    assert dag.get_task("f.a").start_trigger_args.trigger_kwargs == {"launch": "f.launch", "step": "a"}
    for task_id, rule in (("f.a", "one_done"), ("f.launch_started", "always")):
        waits = again.get_task(task_id)
        assert (waits.retries, waits.execution_timeout, waits.pool, waits.trigger_rule) == (0, None, POOL, rule)
        assert (waits.start_from_trigger, waits.priority_weight) == (True, 0)
        assert dag.get_task(task_id).weight_rule == "absolute"
    assert launch.execution_timeout == DAY
    assert (launch.retries, launch.pool, launch.trigger_rule) == (2, "heavy", "all_done")


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "a", "b")])
def test_launch_ids_come_from_the_first_step_in_the_authors_order(dag: DAG, names: tuple[str, ...]) -> None:
    with SparkDataflow("f") as flow:
        first = step(names[0])
        rows.override(task_id=names[1])(count(first))
        step(names[2])
    assert [launch.task_id for launch in flow.launches()] == [f"f.launch_{names[0]}", f"f.launch_{names[1]}"]


def test_a_part_of_the_dag_can_be_copied(dag: DAG) -> None:
    """Airflow copies a DAG to run a part of it."""
    with SparkDataflow("f"):
        step("b", step("a"))
    assert set(dag.partial_subset("f.a", include_upstream=True).task_dict) == {
        "f.launch",
        "f.launch_started",
        "f.a",
    }


def build_two(replan: str) -> SparkDataflow:
    """a* ─► count ─► b*, and c* ─► b*"""
    with SparkDataflow("f", replan=replan) as flow:
        counted = count(step("a"))
        step("b", [counted, step("c")])
        rows.override(task_id="alone", isolate=True)()
    return flow


def test_mirrors_follow_whoever_may_run_their_step(dag: DAG) -> None:
    """With regroup all are deferred once any launch task has begun; that gate is below no task."""
    flow = build_two("regroup")
    assert [launch.label for launch in flow.launches()] == ["launch_a", "launch_alone", "launch_c"]
    gate = dag.get_task("f.launches_started")
    assert gate.upstream_task_ids == set()
    assert gate.downstream_task_ids == {"f.a", "f.b", "f.c", "f.alone"}
    assert gate.start_trigger_args.trigger_kwargs == {
        "launch": "f.launch_a",
        "others": ["f.launch_alone", "f.launch_c"],
    }
    told = {name: dag.get_task(f"f.{name}").start_trigger_args.trigger_kwargs for name in ("a", "b", "alone")}
    assert told == {
        "a": {"launch": "f.launch_a", "step": "a", "others": ["f.launch_c"]},
        "b": {"launch": "f.launch_c", "step": "b", "others": ["f.launch_a"]},
        "alone": {"launch": "f.launch_alone", "step": "alone"},
    }


def test_all_else_is_as_without_regroup() -> None:
    """Also in the serialized DAG: nothing of it is there by default."""
    made = {}
    for replan in ("off", "sizes", "regroup"):
        with DAG("sales", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
            build_two(replan)
        made[replan] = json.dumps(DagSerialization.to_dict(dag), sort_keys=True, default=str)
        ours = edges(dag) if replan == "sizes" else {edge for edge in edges(dag) if "launches_started" not in edge}
        made.setdefault("edges", ours)
        assert made["edges"] == ours
    assert made["off"] == made["sizes"]
    assert "others" not in made["sizes"]
    assert "launches_started" not in made["sizes"]


def test_a_task_that_has_the_name_of_the_gate(dag: DAG) -> None:
    told = "replan='regroup' needs 'launches_started' for itself"
    with pytest.raises(InvalidInput, match=told), SparkDataflow("f", replan="regroup"):
        step("b", [count(step("a"))])
        step("launches_started")
