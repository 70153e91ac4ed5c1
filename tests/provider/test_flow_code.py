"""Which code says what is read of a step's columns, and what the printed plan says of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow
from airflow_dagsched.launch.planning.plan_run import plan_run
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.state import KeptColumns, Measured, MeasuredOutput, State
from airflow_dagsched.plan.report.page import explain_plan
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.spec.flow_code import digest_ways
from airflow_dagsched.provider.spec.run_history import locate_history


@task.spark_step
def wide(spark, day):
    return spark.range(1)


@task.spark_step
def one(wide):
    return wide.select("a")


@task.spark_step
def two(wide):
    return wide.select("b")


@task.spark_step
def other_two(wide):
    return wide.select("c")


@task.spark_step
def apart(spark):
    return spark.range(2)


def make(dag: DAG, second: Any = two, alone: Any = apart, day: str = "{{ ds }}", **more: Any) -> SparkDataflow:
    with SparkDataflow("f", **more) as flow:
        rows = wide(day)
        one(rows)
        second.override(task_id="two")(rows)
        alone.override(task_id="apart")()
    return flow


def fresh() -> DAG:
    return DAG("sales", schedule=None)


def ways(**changes: Any) -> dict[str, str]:
    with fresh() as dag:
        return digest_ways(make(dag, **changes).spec)


def test_the_same_in_each_parse_and_other_with_what_is_above_or_below() -> None:
    first = ways()
    assert ways() == first
    edited = ways(second=other_two)
    assert {name for name in first if first[name] != edited[name]} == {"wide", "two"}
    later = ways(day="2024-01-01")
    assert {name for name in first if first[name] != later[name]} == {"wide", "one", "two"}


@pytest.mark.parametrize("edited", [False, True])
def test_the_plan_says_what_the_last_run_of_the_same_code_kept(
    edited: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    with fresh() as dag:
        flow = make(dag, other_two if edited else two, work_dir=str(tmp_path))
    kept = KeptColumns(columns=36, kept=7, share=0.1944, code=ways()["wide"])
    history = locate_history(flow.spec)
    history.parent.mkdir(parents=True)
    known = State(measured={"wide": Measured(outputs={"": MeasuredOutput(columns=kept)})})
    history.write_bytes(encode_value(known))
    page = explain_plan(plan_run(PlannerHook().gather_facts(flow)).plan)
    told = "  wide -> one, two, 7 of 36 columns: 0.2 of the bytes, by their types\n"
    assert (told in page) is not edited
