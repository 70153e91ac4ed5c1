"""What a submit gets: a manifest without a secret, a payload with everything."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import Interval, SparkDataflow, Table
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.calls import ContextValue, Output
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import PAYLOAD_KEY, SECRETS_KEY, StepSpec, read_manifest
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.steps.outcome import find_hopeless
from airflow_dagsched.provider.runtime.gather_facts import RunFacts, derive_interval
from airflow_dagsched.provider.submission.shipping import Paths, Shipment, build_shipment
from airflow_dagsched.provider.submission.specs import Submit, build_parts

DAY = Interval("2024-01-01", datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
URL = "jdbc:postgresql://user:hunter2@db/sales"


def facts(**changes: Any) -> RunFacts:
    empty: dict[str, Any] = {name: {} for name in ("conf", "context", "states", "skipped", "feeds")}
    run = {"dag_id": "sales", "run_id": "r", "began": 0.0, "interval": DAY}
    return RunFacts(**{**run, "try_id": TryId(try_number=1), **empty, **changes})


def shipped(flow: SparkDataflow, *targets: str, known: RunFacts | None = None, **more: Any) -> Shipment:
    submit = Submit(flow.spec, targets, known or facts(), lambda value: value, (Path(__file__).parent,), **more)
    return build_shipment(submit, build_parts(submit), "launch", Paths(Path("/w"), Path("/p")))


def calls(shipment: Shipment) -> dict[str, Call]:
    return {
        name: pickle.loads(content)
        for name, content in pickle.loads(shipment.pack().payload).items()
        if name not in (PAYLOAD_KEY, SECRETS_KEY)
    }


@task.spark_step
def orders(spark, url, interval=None):
    return spark.range(1)


@task.spark_step(writes=Table("/out/clean", partition_by=["day"]))
def clean(orders):
    return orders


@task
def publish(rows):
    return rows["path"]


def test_arguments_travel_in_the_payload_alone(dag: DAG) -> None:
    """The manifest is kept in the work folder: no password may be in it."""
    with SparkDataflow("f", work_dir="/w") as flow:
        clean(orders(URL))
    found = shipped(flow, "orders", "clean")
    assert "hunter2" not in found.manifest.to_json()
    call = calls(found)["orders"]
    assert call.kwargs == {"spark": ContextValue("spark"), "url": URL, "interval": ContextValue("interval")}
    assert calls(found)["clean"].kwargs == {"orders": Output("orders")}
    assert read_manifest(found.manifest.to_json(), found.manifest.package_version) == found.manifest


def test_secrets_of_context_and_options_are_not_in_the_file_for_everybody(dag: DAG) -> None:
    """The payload has the manifest as it is; paths and ids in the masked one still lead where they should."""
    with SparkDataflow("f", work_dir="/w") as flow:
        secret = Table("shop", format="jdbc", options={"url": URL, "password": "s3same"})
        clean.override(reads=[secret])(orders("x"))
    found = shipped(flow, "orders", "clean", known=facts(context={"params": {"url": URL, "token": "t0ken"}}))
    assert not [word for word in ("hunter2", "s3same", "t0ken") if word in found.pack().shown]
    assert "t0ken" in found.manifest.to_json()
    assert read_manifest(found.pack().shown, found.manifest.package_version).events == found.manifest.events
    assert set(json.loads(pickle.loads(found.pack().payload)[SECRETS_KEY])) >= {"hunter2", "s3same", "t0ken"}


def test_rows_depend_on_what_the_step_asks_of_the_run(dag: DAG) -> None:
    @task.spark_step
    def dear(spark, params):
        return spark.range(params["least"])

    with SparkDataflow("f", work_dir="/w") as flow:
        dear()
    runs = [facts(context={"params": {"least": least}}) for least in (1, 1, 2)]
    first, again, other = (shipped(flow, "dear", known=run).manifest.steps[0].code for run in runs)
    assert first == again != other


def test_a_step_is_dated_by_what_it_asks_for_and_reads(dag: DAG) -> None:
    """Templates and ``params`` count by their values, in the code's fingerprint."""

    @task.spark_step(reads=[])
    def named(spark, label, params):
        return spark.range(1)

    @task.spark_step(reads=[])
    def asking(spark, ds):
        return spark.range(1)

    with SparkDataflow("f", work_dir="/w") as flow:
        named("{{ ds }}")
        asking()
        clean.override(task_id="day", reads=Table("/in", where="day = interval.start"))(named("x"))
        clean.override(task_id="all", reads=Table("/in", where="country = 'interval.start'"))(named("y"))
    run = facts(context={"params": {}, "ds": "2024-01-01"})
    specs = {spec.id: spec for spec in shipped(flow, *flow.graph.sort_steps(), known=run).manifest.steps}
    assert {name for name, spec in specs.items() if spec.dated} == {"asking", "day"}


def test_a_backfill_shares_what_its_runs_have_in_common(dag: DAG) -> None:
    """names ─┬─> day (dated)        names alone: label has a template, which may be another text for each run
    label ─┘
    """

    @task.spark_step(reads=[])
    def names(spark, label="x"):
        return spark.range(1)

    @task.spark_step
    def day(names, label, interval):
        return names

    with SparkDataflow("f", work_dir="/w") as flow:
        day(names(), names.override(task_id="label")("{{ ds }}"))
    for backfill, shared in ((False, {}), (True, {"names": ("",)})):
        run = facts(context={"ds": "2024-01-01"}, backfill=backfill)
        specs = shipped(flow, *flow.graph.sort_steps(), known=run).manifest.steps
        assert {spec.id: spec.share for spec in specs if spec.share} == shared


def test_steps_of_another_submit_are_outside(dag: DAG) -> None:
    """One submit a step: orders must store its rows, and counts as an upstream that ended elsewhere."""
    with SparkDataflow("f", work_dir="/w") as flow:
        clean(orders(URL))
    first = shipped(flow, "orders").manifest
    assert first.steps[0].store == ("",)
    second = shipped(flow, "clean", states={"orders": "reused"}, datasets={"orders/": "/d"}).manifest
    assert [spec.id for spec in second.steps] == ["orders", "clean"]
    assert (second.steps[1].upstream, second.steps[1].outside) == ((), {"orders": "reused"})


class Bounds(NamedTuple):
    low: int
    high: int


def test_a_named_tuple_arrives_as_what_it_is(dag: DAG) -> None:
    with SparkDataflow("f", work_dir="/w") as flow:
        orders([Bounds(1, 2)])
    assert repr(calls(shipped(flow, "orders"))["orders"].kwargs["url"]) == "[Bounds(low=1, high=2)]"


def test_rows_an_ordinary_task_takes_are_stored(dag: DAG) -> None:
    """Its path must mean something; a table is where its rows are already."""
    with SparkDataflow("f", work_dir="/w") as flow:
        rows = orders(URL)
        publish(rows)
        publish(clean(rows))
    stored = {spec.id: spec.store for spec in shipped(flow, "orders", "clean").manifest.steps}
    assert stored == {"orders": ("",), "clean": ()}


def test_a_run_without_a_date(dag: DAG) -> None:
    """A parameter with a default is left out; one without says the two ways out."""

    @task.spark_step
    def strict(spark, interval):
        return spark.range(1)

    with SparkDataflow("f", work_dir="/w") as flow:
        orders(URL)
        strict()
    dateless = facts(interval=Interval("r"))
    assert "interval" not in calls(shipped(flow, "orders", known=dateless))["orders"].kwargs
    with pytest.raises(InvalidInput, match=r"'f.strict'.*'interval'.*logical date.*give the parameter a default"):
        shipped(flow, "strict", known=dateless)


def test_a_hopeless_step_needs_no_arguments(dag: DAG) -> None:
    """Its upstream failed: what that would have returned does not exist."""

    @task
    def fetch():
        return URL

    with SparkDataflow("f", work_dir="/w") as flow:
        orders(fetch())
    spec = shipped(flow, "orders", known=facts(states={"f.fetch": "failed"})).manifest.steps[0]
    assert spec.outside == {"f.fetch": "failed"}


def test_instances_of_a_mapped_task_count_one_by_one(dag: DAG) -> None:
    """One of three failed: a step below with the rule ``none_failed`` does not run, one with ``one_failed`` does."""

    @task
    def fetch(which):
        return URL

    @task
    def fetch_0():
        return URL

    with SparkDataflow("f", work_dir="/w") as flow:
        found = fetch.expand(which=[1, 2, 3])
        alone = fetch_0()
        strict, lenient = (
            orders.override(task_id=rule, trigger_rule=rule)(URL) for rule in ("none_failed", "one_failed")
        )
        found >> strict
        found >> lenient
        alone >> lenient
    states = {"f.fetch_1": "success", "f.fetch_2": "failed", "f.fetch_0": "success", "f.fetch_12x": "failed"}
    specs = build_specs(flow, facts(states=states))
    assert specs["none_failed"].outside == {"f.fetch_1": "success", "f.fetch_2": "failed"}
    assert specs["one_failed"].outside == {**specs["none_failed"].outside, "f.fetch_0": "success"}
    assert set(find_hopeless(specs.values())) == {"none_failed"}


def build_specs(flow: SparkDataflow, known: RunFacts) -> dict[str, StepSpec]:
    manifest = shipped(flow, *flow.graph.sort_steps(), known=known).manifest
    return {spec.id: spec for spec in manifest.steps}


def test_what_cannot_be_pickled_names_its_step(dag: DAG) -> None:
    lock = __import__("threading").Lock()

    @task.spark_step
    def locked(spark):
        return lock.locked()

    with SparkDataflow("f", work_dir="/w") as flow:
        locked()
    with pytest.raises(InvalidInput, match=r"DAG 'sales', step 'locked'.*cannot be shipped.*lock"):
        shipped(flow, "locked")


def test_cleared_steps_are_forced(dag: DAG) -> None:
    """After a clear, the steps whose mirrors are open again; on the first run none."""
    with SparkDataflow("f", work_dir="/w") as flow:
        clean(orders(URL))
    states = {"f.orders": "success", "f.clean": "deferred"}
    for clear_number, forced in ((0, [False, False]), (1, [False, True])):
        known = facts(states=states, try_id=TryId(clear_number=clear_number))
        assert [spec.force for spec in shipped(flow, "orders", "clean", known=known).manifest.steps] == forced


class DagRun:
    """The dates of a run."""

    data_interval_start = data_interval_end = partition_date = partition_key = logical_date = None
    run_id = "manual"

    def __init__(self, **dates: Any) -> None:
        vars(self).update(dates)


def test_the_interval_of_a_run() -> None:
    """The data interval, else the partition's date, else a date its key says, else nothing but a key."""
    start, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)
    found = derive_interval(DagRun(data_interval_start=start, data_interval_end=end))
    assert (found.start, found.end) == (start, end)
    assert derive_interval(DagRun(partition_key="eu", partition_date=start)) == Interval("eu", start)
    assert derive_interval(DagRun(partition_key="2024-01-01")).start == start
    assert derive_interval(DagRun(partition_key="eu")) == Interval("eu")
    assert derive_interval(DagRun()) == Interval("manual")
