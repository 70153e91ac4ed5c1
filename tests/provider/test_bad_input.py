"""Each mistake in a DAG file is one clear error at parse, naming DAG, step and rule."""

from __future__ import annotations

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, task, task_group

from airflow_dagsched import SparkDataflow, SparkSqlStep, Table
from airflow_dagsched.errors import InvalidInput, LaunchRefused
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook


@task.spark_step
def orders(spark):
    return spark.range(3)


@task.spark_step
def clean(orders):
    return orders


def test_step_outside_a_dataflow(dag: DAG) -> None:
    """A step has no application to run in outside of a dataflow."""
    with pytest.raises(InvalidInput, match=r"DAG 'sales', step 'orders'.*with SparkDataflow"):
        orders()


def test_cycle_is_shown_as_a_path(dag: DAG) -> None:
    """orders -> clean -> orders"""
    with pytest.raises(InvalidInput, match=r"DAG 'sales', dataflow 'f'.*orders -> clean -> orders"), SparkDataflow("f"):
        rows = orders()
        clean(rows) >> rows


def test_spark_operator_inside(dag: DAG) -> None:
    """An operator that starts Spark by itself is no step."""
    with pytest.raises(InvalidInput, match=r"'f.old' is a SparkSubmitOperator.*write it as a step"), SparkDataflow("f"):
        orders()
        SparkSubmitOperator(task_id="old", application="x.py")


def test_subclass_of_a_spark_operator_inside(dag: DAG) -> None:
    """The author's own subclass starts Spark by itself too."""

    class MySubmit(SparkSubmitOperator):
        pass

    with (
        pytest.raises(InvalidInput, match=r"DAG 'sales'.*'f.old' is a MySubmit.*write it as a step"),
        SparkDataflow("f"),
    ):
        orders()
        MySubmit(task_id="old", application="x.py")


def test_channel_into_a_step_that_does_not_take_it(dag: DAG) -> None:
    """clean takes one DataFrame, not two."""
    with (
        pytest.raises(InvalidInput, match=r"step 'f.clean': clean\(\) takes 1 positional argument but 2"),
        SparkDataflow("f"),
    ):
        rows = orders()
        clean(rows, rows)


def test_rows_of_another_dataflow(dag: DAG) -> None:
    """Rows are handed over inside a dataflow only: the function would get a description of them."""
    with SparkDataflow("f"):
        rows = orders()
    with (
        pytest.raises(InvalidInput, match=r"DAG 'sales', step 'g.clean': .*'f.orders'.*dataflow 'f'.*Table"),
        SparkDataflow("g"),
    ):
        clean(rows)


def test_missing_argument(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"clean\(\) missing argument 'orders'"), SparkDataflow("f"):
        clean()


def test_starred_parameter(dag: DAG) -> None:
    """The driver passes arguments by name; a list of steps is an argument like any other."""

    @task.spark_step
    def union(spark, *tables):
        return tables[0]

    with pytest.raises(InvalidInput, match=r"takes \*tables.*pass a list"), SparkDataflow("f"):
        union(orders(), orders())


def test_expand(dag: DAG) -> None:
    """Mapped tasks can't start from a trigger."""
    with pytest.raises(InvalidInput, match=r"'sales', step 'f.clean': expand: .*override\(task_id"), SparkDataflow("f"):
        clean.expand(orders=[1, 2])
    with pytest.raises(InvalidInput, match=r"'sales', step 'g.s': expand: .*override\(task_id"), SparkDataflow("g"):
        SparkSqlStep.partial(task_id="s").expand(sql=["select 1", "select 2"])


def test_step_asks_for_the_task_instance(dag: DAG) -> None:
    @task.spark_step
    def nosy(spark, ti):
        return spark.range(ti.try_number)

    with pytest.raises(InvalidInput, match=r"nosy\(\) asks for ti.*may ask for"), SparkDataflow("f"):
        nosy()


def test_template_needs_the_task_instance(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"template asks for ti"), SparkDataflow("f"):
        clean("{{ ti.try_number }}")


def test_launch_setting_on_a_step(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"'sales', step 'f.orders': retries: belongs to the"), SparkDataflow("f"):
        orders.override(retries=3)()


def test_unknown_trigger_rule_and_size(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match="'sometimes' is none of"), SparkDataflow("f"):
        orders.override(trigger_rule="sometimes")()
    with pytest.raises(InvalidInput, match="memory: 'much' is no size"), SparkDataflow("g"):
        orders.override(memory="much")()


@pytest.mark.parametrize(
    ("declared", "rule"),
    [
        ({"reads": "/data/x"}, "reads must be a Table or a list of Tables, not '/data/x'"),
        ({"reads": ["/data/x"]}, "reads must be a Table or a list of Tables, not one with '/data/x'"),
        ({"reads": Table("/data/x", where="day = intervall.start")}, "where has unknown name 'intervall.start'"),
        ({"reads": [Table("/data/x", where="a = 'x' and day >= interval.begin")]}, "unknown name 'interval.begin'"),
        ({"writes": Table("/data/x", where="day = interval.start")}, "writes: where is for reads"),
        ({"reads": Table("/tmp/{{ ds }}/x")}, "reads: .*a location is not rendered"),
        ({"writes": Table("/tmp/{{ ds }}/x")}, "writes: .*a location is not rendered"),
        ({"cores": "2"}, "cores must be a whole number of at least 1, not '2'"),
        ({"parallelism": 0}, "parallelism must be a whole number of at least 1, not 0"),
        ({"runtime_s": "1"}, "runtime_s must be a number"),
        ({"memory": None}, "memory: None is no size"),
        ({"mode": "streaming"}, r"mode='streaming' needs SparkDataflow\(..., mode='streaming'\)"),
        ({"mode": "stream"}, "mode must be 'batch' or 'streaming', not 'stream'"),
        ({"stateful": True}, r"stateful=True needs SparkDataflow\(..., mode='streaming'\)"),
        ({"stateful": "yes"}, "stateful must be True or False, not 'yes'"),
        ({"carries": ["total"]}, r"carries needs SparkDataflow\(..., mode='streaming'\)"),
        ({"carries": "total"}, "carries must be a list of names of state, not 'total'"),
        ({"pinned": "w1"}, "pinned must be a list of workers' ids, not 'w1'"),
        ({"pinned": [1]}, "pinned must be a list of workers' ids, not one with 1"),
        ({"weight": 0}, "weight must be a number above 0, not 0"),
        ({"weight": 2.0}, "counts for placement='high_availability' and classes of your own, not 'auto'"),
        ({"state_mb": 5}, "state_mb is no setting of a step in a DAG: a stream has window="),
        ({"window_s": 0}, "window_s is no setting of a step in a DAG"),
        ({"application": {"memory": "1g"}}, "application: 'memory' is no Spark setting.*begin with 'spark.'"),
        ({"application": {"spark.x": ["1"]}}, "application: 'spark.x' must be a text or a number, not list"),
        ({"application": "spark.x=1"}, "application: must be a dict of Spark settings, not str"),
    ],
)
def test_declared_wrongly(dag: DAG, declared: dict, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule) as error, SparkDataflow("f"):
        orders.override(**declared)()
    assert error.value.where == "DAG 'sales', step 'f.orders'"


@pytest.mark.parametrize(
    "where", ["day = interval.start and kind = 'a=b.c'", "t.day = interval.key", "day > '2013-01-01'", "x = 1.5"]
)
def test_where_that_is_right(dag: DAG, where: str) -> None:
    with SparkDataflow("f"):
        orders.override(reads=Table("/data/x", where=where))()


@pytest.mark.parametrize(
    ("feedback", "rule"),
    [
        ({"clean.nope": "clean"}, "feedback 'clean.nope' is no parameter of its steps; they have clean.orders"),
        ({"nope": "clean"}, "feedback 'nope' is no parameter"),
        ({"clean.orders": "orders"}, "feedback 'clean.orders' comes from 'f.orders', which is not repeated"),
    ],
)
def test_feedback(dag: DAG, feedback: dict[str, str], rule: str) -> None:
    with pytest.raises(InvalidInput, match=f"DAG 'sales', dataflow 'f': repeat: {rule}"), SparkDataflow("f") as flow:
        rows = clean(orders())
        flow.repeat([rows], max_iterations=2, feedback={name: flow.steps[step] for name, step in feedback.items()})


def test_feedback_into_a_parameter_with_a_default(dag: DAG) -> None:
    """The first iteration has nothing for it yet."""

    @task.spark_step
    def better(guess, before=None):
        return guess

    with SparkDataflow("f") as flow:
        last = better(orders())
        flow.repeat([last], max_iterations=2, feedback={"better.before": last})
    assert flow.spec.map_repeat_blocks() == {"better": ("better",)}


def test_repeat_without_rows_to_feed_back(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"'sales', step 'f.orders': repeat: .*no rows"), SparkDataflow("f") as flow:
        flow.repeat([orders()], max_iterations=2)


def test_step_in_two_repeats(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"'sales'.*step 'f.clean' can be in one"), SparkDataflow("f") as flow:
        rows = clean(orders())
        flow.repeat([rows], max_iterations=2)
        flow.repeat([rows], max_iterations=3)


def test_repeat_of_an_ordinary_task(dag: DAG) -> None:
    @task
    def plain():
        return 1

    with pytest.raises(InvalidInput, match=r"'sales', dataflow 'f': repeat: 'f.plain'"), SparkDataflow("f") as flow:
        orders()
        flow.repeat([plain()], max_iterations=2)


def test_template_that_cannot_be_parsed(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"'sales', step 'f.clean': template '{{ ds' cannot"), SparkDataflow("f"):
        clean("{{ ds")


def test_positional_only_parameter(dag: DAG) -> None:
    @task.spark_step
    def strict(rows, /):
        return rows

    with pytest.raises(InvalidInput, match=r"'sales', step 'f.strict': .*'rows' by position only"), SparkDataflow("f"):
        strict(orders())


def test_async_function(dag: DAG) -> None:
    @task.spark_step
    async def late(spark):
        return spark.range(3)

    with pytest.raises(InvalidInput, match=r"'sales', step 'f.late': late\(\) is async"), SparkDataflow("f"):
        late()


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"slots": 0}, "slots: Expected `int` >= 1"),
        ({"lease_s": -5}, "lease_s: must be a number of seconds, 1 or more, not -5"),
        ({"lease_s": "60"}, "lease_s: must be a number of seconds, 1 or more, not '60'"),
        ({"conf": "spark.x=5"}, "conf: must be a dict of Spark settings, not str"),
        ({"conn_id": None}, "conn_id: must be the id of an Airflow connection, not None"),
        ({"work_dir": 5}, "work_dir: must be the path of a folder, as text, not 5"),
        ({"task_runtimes": ["x"]}, r"task_runtimes: must be a dict of seconds by task id, not \['x'\]"),
        ({"cluster": {"workers": []}}, "cluster: must be the path of a cluster file, or a Cluster, not"),
        ({"run": "perstep"}, "run: must be 'planned' or 'per_step', not 'perstep'"),
        ({"prune": "maybe"}, "prune: must be 'auto', 'declared', 'analysed' or False, not 'maybe'"),
        ({"cluster": "/nope.json"}, "cluster: no file '/nope.json'"),
        ({"retrys": 3}, "retrys: is no setting of a dataflow"),
        ({"application": "x.py"}, "application: is no setting of a dataflow"),
    ],
)
def test_setting_of_a_dataflow(dag: DAG, settings: dict, rule: str) -> None:
    with pytest.raises(InvalidInput, match=f"DAG 'sales', dataflow 'f': {rule}"):
        SparkDataflow("f", **settings)


def test_settings_of_launch_tasks(dag: DAG) -> None:
    """What a task takes, and what spark-submit takes."""
    with SparkDataflow("f", retries=2, pool="heavy", owner="me", executor_memory="2g", queue="q") as flow:
        orders()
    assert [(launch.retries, launch.pool, launch.queue) for launch in flow.launches()] == [(2, "heavy", "q")]


def test_launch_id_is_taken(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match="launch"), SparkDataflow("f"):
        orders.override(task_id="launch")()


def test_empty_dataflow(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match="has no step"), SparkDataflow("f"):
        pass


def test_authors_own_exception_is_not_hidden(dag: DAG) -> None:
    with pytest.raises(ZeroDivisionError), SparkDataflow("f"):
        orders()
        _ = 1 / 0


def test_two_inputs_with_one_view_name(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match="two inputs have one view name"), SparkDataflow("f"):
        rows = orders()
        SparkSqlStep("s", sql="select 1", inputs=[rows, rows])


def test_missing_sql_file(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"sql: no file '.*nowhere.sql'"), SparkDataflow("f"):
        SparkSqlStep("s", sql="nowhere.sql")


def test_partition_by_a_string() -> None:
    with pytest.raises(ValueError, match="must be a list of columns"):
        Table("/t", partition_by="day")  # type: ignore[arg-type]


def test_cluster_deploy_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver program runs beside the Airflow worker: it would be looked for there in vain."""
    where = '{"conn_type": "spark", "host": "spark://m", "port": 7077, "extra": {"deploy-mode": "cluster"}}'
    monkeypatch.setenv("AIRFLOW_CONN_FAR", where)
    with pytest.raises(LaunchRefused, match="asks for deploy mode 'cluster'"):
        PlannerHook("far").check_connection("f.launch")


def test_expand_of_a_task_group(dag: DAG) -> None:
    """A step in a mapped group would be mapped too."""

    @task_group
    def each(value):
        return clean(value)

    with pytest.raises(InvalidInput, match=r"'sales', step 'f.each.clean': is inside the mapped"), SparkDataflow("f"):
        each.expand(value=[1, 2])


def test_settings_of_steps_keep_them_apart(dag: DAG) -> None:
    """orders (a) -> once (b) -> twice (b)"""
    with SparkDataflow("f") as flow:
        rows = orders.override(application={"spark.shop": "a"})()
        for name in ("once", "twice"):
            rows = clean.override(task_id=name, application={"spark.shop": "b"})(rows)
    assert [group.steps for group in flow.grouping.groups] == [("orders",), ("once", "twice")]
