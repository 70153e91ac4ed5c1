"""What launches are told of the columns of stored datasets: what those of the last run have read, of the same code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task
from msgspec.structs import replace

from airflow_dagsched import Interval, SparkDataflow
from airflow_dagsched.launch.protocol.events import ColumnsRead
from airflow_dagsched.model.state import Measured, MeasuredOutput, ReadColumns, State
from airflow_dagsched.provider.submission.narrow import choose_columns, choose_rows
from tests.testbed.recorded import record_launch


@task.spark_step
def wide(spark):
    return spark.range(1)


@task.spark_step(isolate=True)
def one(wide):
    return wide.select("a")


@task.spark_step(isolate=True)
def two(wide):
    return wide.select("b")


@task.spark_step(isolate=True)
def other_two(wide):
    return wide.select("c")


@task
def publish(rows):
    return rows["path"]


def make(folder: Path, second: Any = two, **more: Any) -> SparkDataflow:
    with DAG("sales", schedule=None), SparkDataflow("f", work_dir=str(folder), **more) as flow:
        rows = wide()
        one(rows)
        second.override(task_id="two")(rows)
    return flow


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.check_java", lambda group: None)


def launch(flow: SparkDataflow, run: str, step: str, folder: Path, *told: ColumnsRead, **conf: Any) -> dict[str, Any]:
    """The specs of the manifest, by step, of the launch task of ``step``."""
    (mine,) = (each for each in flow.launches() if step in each.group.steps)
    (found,) = record_launch(mine, folder, {}, Interval("r"), run, conf, told=told)
    return {spec["id"]: spec for spec in found.manifest["steps"]}


def run_once(flow: SparkDataflow, folder: Path, *, run: str, **read: tuple[str, ...] | None) -> Any:
    """What the manifest says of the rows of wide; its readers read these columns then."""
    first = launch(flow, run, "wide", folder)
    for step, columns in read.items():
        launch(flow, run, step, folder, ColumnsRead({"wide/": {step: columns}}))
    return first["wide"]["narrow"]


def test_the_next_run_of_the_same_code_is_told(tmp_path: Path) -> None:
    """What the same code has read once it may read again; other code may read anything."""
    assert run_once(make(tmp_path), tmp_path, run="r1", one=("a",), two=("b",)) == {}
    assert run_once(make(tmp_path), tmp_path, run="r2", one=("c", "a"), two=()) == {"": ["a", "b"]}
    assert run_once(make(tmp_path), tmp_path, run="r3") == {"": ["a", "b", "c"]}
    assert run_once(make(tmp_path, other_two), tmp_path, run="r4") == {}
    assert run_once(make(tmp_path, keep_columns="all"), tmp_path, run="r5") == {}
    assert run_once(make(tmp_path), tmp_path, run="r6", two=None) == {"": ["a", "b", "c"]}
    assert run_once(make(tmp_path), tmp_path, run="r7", two=("b",)) == {}
    assert run_once(make(tmp_path), tmp_path, run="r8") == {}


def ask_once(flow: SparkDataflow, folder: Path, *, run: str, **asked: tuple[str, ...]) -> Any:
    """What the manifest says of the rows of wide; its readers ask this of them then."""
    first = launch(flow, run, "wide", folder)
    for step, where in asked.items():
        launch(flow, run, step, folder, ColumnsRead({"wide/": {step: ("a",)}}, {"wide/": {step: where}}))
    return first["wide"]["where"]


def test_what_all_readers_ask_of_rows_counts_once_two_runs_have_asked_it(tmp_path: Path) -> None:
    """``a = 1`` may be the first run's day."""
    assert ask_once(make(tmp_path), tmp_path, run="r1", one=("a = 1", "b = 2", "c = 3"), two=("b = 2", "c = 3")) == {}
    # Cleared, and run again.
    assert ask_once(make(tmp_path), tmp_path, run="r1", one=("b = 2", "c = 3"), two=("b = 2", "c = 3")) == {}
    assert ask_once(make(tmp_path), tmp_path, run="r2", one=("b = 2", "d = 4"), two=("b = 2",)) == {}
    assert ask_once(make(tmp_path), tmp_path, run="r3") == {"": ["b = 2"]}
    assert ask_once(make(tmp_path, other_two), tmp_path, run="r4") == {}
    assert ask_once(make(tmp_path, keep_columns="all"), tmp_path, run="r5") == {}
    # Who once asks for others has all made again, and nothing is left out from then on.
    assert ask_once(make(tmp_path), tmp_path, run="r6", two=()) == {"": ["b = 2"]}
    assert ask_once(make(tmp_path), tmp_path, run="r7", two=("b = 2",)) == {}
    assert ask_once(make(tmp_path), tmp_path, run="r8") == {}


def test_the_readers_know_by_which_code_it_was_written(tmp_path: Path) -> None:
    wrote = launch(make(tmp_path), "r1", "wide", tmp_path)["wide"]
    read = launch(make(tmp_path), "r1", "two", tmp_path)["wide"]
    edited = launch(make(tmp_path, other_two), "r1", "two", tmp_path)["wide"]
    assert wrote["way"] == read["way"] != edited["way"]
    assert wrote["way"] != ""


def known(**columns: tuple[str, ...] | None) -> State:
    read = {name: ReadColumns(columns=each) for name, each in columns.items()}
    return State(measured={"wide": Measured(outputs={"": MeasuredOutput(read=read)})})


def test_of_whom_nothing_is_known_reads_all(tmp_path: Path) -> None:
    spec = make(tmp_path).spec
    assert choose_columns(spec, known(one=("a",), two=("b",))) == {"wide": {"": ("a", "b")}}
    assert choose_columns(spec, known(one=("a",))) == {}
    assert choose_columns(spec, known(one=("a",), two=None)) == {}
    assert choose_columns(spec, State()) == {}


def test_rows_are_left_out_where_all_ask_the_same(tmp_path: Path) -> None:
    spec = make(tmp_path).spec

    def choose(**reads: ReadColumns) -> dict[str, Any]:
        return choose_rows(spec, State(measured={"wide": Measured(outputs={"": MeasuredOutput(read=reads)})}))

    asked = ReadColumns(columns=("a",), where=("a > 1", "b > 1"))
    assert choose(one=asked, two=asked) == {"wide": {"": ("a > 1", "b > 1")}}
    assert choose(one=asked, two=replace(asked, where=("b > 1",))) == {"wide": {"": ("b > 1",)}}
    assert choose(one=asked, two=replace(asked, where=())) == {}
    assert choose(one=asked, two=replace(asked, run="r1")) == {}
    assert choose(one=asked, two=replace(asked, columns=None)) == {}
    assert choose(one=asked) == {}
    assert choose(one=asked, two=ReadColumns(columns=("a",))) == {}


def test_what_an_ordinary_task_takes_has_all_columns(tmp_path: Path) -> None:
    with DAG("sales", schedule=None), SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        rows = wide()
        one(rows)
        publish(rows)
    assert choose_columns(flow.spec, known(one=("a",))) == {}
