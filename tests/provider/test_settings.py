"""Each setting that an author gives has its effect, or is refused in one line that says what to do."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow, SparkSqlStep
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.provider.wiring.launch import LaunchOperator

ONE_FILE = """
from airflow.sdk import DAG, task
from airflow_dagsched import SparkDataflow

with DAG("sales", schedule=None):
    @task
    def before(): ...
    @task
    def after(): ...
    with SparkDataflow("f", work_dir="/w", task_runtimes={"TASK": 60}) as flow:
        task.spark_step(task_id="orders")(lambda spark: spark.range(3))()
    before() >> flow >> after()
"""


@task.spark_step
def orders(spark):
    return spark.range(3)


@task
def slow() -> int:
    return 1


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"conf": {"foo": "1"}}, "conf: 'foo' is no Spark setting"),
        ({"conf": {"spark.master": "yarn"}}, "conf: 'spark.master' is not the author's to give"),
        ({"task_runtimes": {"x": -5}}, "task_runtimes: must be a dict of seconds, 0 or more, by task id, not"),
        ({"task_runtimes": {"x": "long"}}, "task_runtimes: must be a dict of seconds"),
        ({"task_runtimes": {"x": float("nan")}}, "task_runtimes: must be a dict of seconds"),
        ({"stall_s": -1}, "stall_s: must be a number of seconds, 0 .never. or more, not -1"),
        ({"stall_s": "x"}, "stall_s: must be a number of seconds"),
        ({"stall_s": float("nan")}, "stall_s: must be a number of seconds"),
        ({"lease_s": 1e-9}, "lease_s: must be a number of seconds, 1 or more, not 1e-09"),
        ({"apart": ["orders"]}, "apart: must be a list of lists of step ids"),
        ({"together": 5}, "together: must be a list of lists of step ids"),
        ({"placement": 5}, "placement: must be the name of a policy"),
        ({"pool": "p", "pool_cores": "8"}, "pool_cores: must be a whole number"),
        ({"deploy_mode": "cluster"}, r"deploy_mode: is no setting of a dataflow: .*\(client mode\)"),
        ({"track_driver_via_k8s_api": True}, "track_driver_via_k8s_api: is no setting .*client mode"),
        ({"yarn_track_via_rm_api": True}, "yarn_track_via_rm_api: is no setting .*client mode"),
        ({"reconnect_on_retry": True}, "reconnect_on_retry: is no setting .*client mode"),
        ({"java_class": "a.B"}, "java_class: is no setting of a dataflow: the launch task sets it"),
        ({"application_args": ["x"]}, "application_args: is no setting of a dataflow: the launch task sets it"),
        ({"args": [1]}, "args: is no setting of a dataflow, nor of its launch tasks"),
        ({"executor_memry": "1g"}, "executor_memry: .*did you mean 'executor_memory'"),
        ({"default_args": {"deploy_mode": "cluster"}}, "default_args: 'deploy_mode' is no setting .*client mode"),
        ({"default_args": {"conf": {"spark.a": "1"}}}, "default_args: 'conf' belongs to SparkDataflow"),
        ({"default_args": {"retrys": 1}}, "default_args: 'retrys' is no .*did you mean 'retries'"),
        ({"default_args": [1]}, "default_args: must be a dict"),
    ],
)
def test_of_a_dataflow(dag: DAG, settings: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=f"^DAG 'sales', dataflow 'f': {rule}"):
        SparkDataflow("f", **settings)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"retries": -1}, "retries: must be 0 or more, not -1"),
        ({"default_args": {"retries": -1}}, "retries: must be 0 or more, not -1"),
        ({"execution_timeout": 30}, "its launch task cannot be made: execution_timeout must be timedelta"),
        ({"resources": 3}, "its launch task cannot be made: "),
    ],
)
def test_of_its_launch_task(dag: DAG, settings: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=f"^DAG 'sales', dataflow 'f': {rule}"), SparkDataflow("f", **settings):
        orders()


def connect(monkeypatch: pytest.MonkeyPatch, extra: dict[str, str]) -> None:
    raw = {"conn_type": "spark", "host": "yarn", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(raw))


def made(**settings: Any) -> LaunchOperator:
    with SparkDataflow("f", **settings) as flow:
        orders()
    return flow.launches()[0]


def test_a_driver_program_is_beside_its_worker_whatever_other_tasks_want(
    dag: DAG, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The DAG's ``default_args`` mean the author's own Spark tasks; the connection is refused elsewhere."""
    connect(monkeypatch, {})
    dag.default_args = {
        "deploy_mode": "cluster", "java_class": "a.B", "application_args": ["x"], "track_driver_via_k8s_api": True,
        "yarn_track_via_rm_api": True, "executor_memory": "2g",
    }  # fmt: skip
    launch = made()
    launch._spark_binary = "spark-submit"
    hook = launch._get_hook()
    assert hook._connection["deploy_mode"] == "client"
    assert (hook._java_class, hook._application_args, hook._executor_memory) == (None, None, "2g")
    assert (hook._track_driver_via_k8s_api, hook._yarn_track_via_rm_api) == (False, False)


def test_what_a_connection_says_of_the_deploy_mode_is_not_heard(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before; a submit would be beside the worker all the same."""
    connect(monkeypatch, {"deploy-mode": "cluster"})
    launch = made()
    launch._spark_binary = "spark-submit"
    assert launch._get_hook()._connection["deploy_mode"] == "client"


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"memry": "1g"}, "memry: is no argument of a step; did you mean 'memory'?"),
        ({"window_s": 5}, "window_s is no setting of a step in a DAG"),
        ({"start_from_trigger": False}, "start_from_trigger: is no argument of a step"),
        ({"pre_execute": print}, "pre_execute: belongs to the launch task: set it on SparkDataflow"),
        ({"post_execute": print}, "post_execute: belongs to the launch task"),
        ({"on_execute_callback": print}, "on_execute_callback: belongs to the launch task"),
        ({"on_retry_callback": print}, "on_retry_callback: belongs to the launch task"),
        ({"on_success_callback": print}, "on_success_callback: is called for no step: .*on_failure_callback alone"),
        ({"on_skipped_callback": print}, "on_skipped_callback: is called for no step"),
        ({"run_as_user": "x"}, "run_as_user: belongs to the launch task"),
        ({"do_xcom_push": False}, "do_xcom_push: has no effect: what a step returns is its XCom"),
        ({"depends_on_past": True}, "depends_on_past: belongs to the launch task"),
        ({"wait_for_downstream": True}, "wait_for_downstream: belongs to the launch task"),
        ({"max_active_tis_per_dagrun": 1}, "max_active_tis_per_dagrun: belongs to the launch task"),
        ({"start_date": datetime(2030, 1, 1, tzinfo=UTC)}, "start_date: belongs to the launch task"),
        ({"email_on_failure": True}, "email_on_failure: belongs to the launch task"),
        ({"params": {"x": 1}}, "params: belongs to the launch task"),
        ({"execution_timeout": timedelta(1)}, "execution_timeout: belongs to the launch task"),
        ({"executor_memory": "1g"}, "executor_memory: belongs to the launch task"),
        ({"conf": {"spark.a": "1"}}, "conf: is the dataflow's: .*application="),
        ({"multiple_outputs": True}, "multiple_outputs: has no effect: return a dict of named DataFrames"),
        ({"default_args": {"retries": 3}}, "default_args: are a dataflow's or a DAG's"),
        ({"application": {"spark.x": float("nan")}}, "application: 'spark.x' must be a text or a finite number"),
        ({"application": {"spark.submit.deployMode": "cluster"}}, "application: 'spark.submit.deployMode' is not"),
    ],
)
def test_of_a_step(dag: DAG, arguments: dict[str, Any], rule: str) -> None:
    """By ``override``, and as a SQL step."""
    with pytest.raises(InvalidInput, match=f"^DAG 'sales', step 'f.orders': {rule}"), SparkDataflow("f"):
        orders.override(**arguments)()
    with pytest.raises(InvalidInput, match=f"^DAG 'sales', step 'g.q': {rule}"), SparkDataflow("g"):
        SparkSqlStep("q", sql="select 1", **arguments)


def test_what_a_step_takes_as_any_task_does(dag: DAG) -> None:
    """The DAG's ``default_args`` and ``params`` mean tasks that work; what is of no use to a mirror is not refused."""
    dag.default_args = {"retries": 3, "on_success_callback": print, "email_on_failure": False, "depends_on_past": True}
    dag.params["limit"] = 5
    with SparkDataflow("f") as flow:
        orders.override(owner="me", doc_md="why", on_failure_callback=print, task_display_name="All orders")()
    step = flow.steps["orders"]
    assert (step.owner, step.doc_md, step.on_failure_callback) == ("me", "why", [print])
    assert (step.task_display_name, step.retries) == ("All orders", 0)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("slow", "'slow' is no task; did you mean 'f.slow'"),
        ("f.orders", "'f.orders' is a step: it takes runtime_s= itself"),
    ],
)
def test_a_runtime_is_of_an_ordinary_task(dag: DAG, name: str, rule: str) -> None:
    with (
        pytest.raises(InvalidInput, match=f"^DAG 'sales', dataflow 'f': task_runtimes: {rule}"),
        SparkDataflow("f", task_runtimes={name: 7200}),
    ):
        slow() >> orders()
    with SparkDataflow("g", task_runtimes={"g.slow": 7200}) as flow:
        slow() >> orders()
    assert [(one.id, one.runtime_s) for one in flow.dataflow.tasks] == [("g.slow", 7200)]


@pytest.mark.airflow
def test_a_runtime_is_of_a_task_that_steps_wait_for(tmp_path: Path) -> None:
    """Said once the file has been read: tasks and edges may be made after the dataflow."""
    errors = {}
    for name in ("before", "after", "befor"):
        (tmp_path / f"{name}.py").write_text(ONE_FILE.replace("TASK", name))
        errors[name] = "".join(DagBag(tmp_path / f"{name}.py").import_errors.values())
    assert errors == {
        "before": "",
        "after": "InvalidInput: DAG 'sales', dataflow 'f': task_runtimes: no step waits for a task 'after'",
        "befor": "InvalidInput: DAG 'sales', dataflow 'f': task_runtimes: no step waits for a task 'befor'; "
        "did you mean 'before'?",
    }
