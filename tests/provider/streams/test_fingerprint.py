"""The fingerprint of a stream: another one is another epoch, so nothing but a change changes it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow, Table
from airflow_dagsched.errors import InvalidInput, LaunchRefused
from airflow_dagsched.provider.commands.bag import find_flows
from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec
from airflow_dagsched.provider.streaming.choose_epoch import make_wanted
from airflow_dagsched.provider.submission.fresh_look import check_in_fresh_process
from tests.provider.streams.test_parse import CLICKS

SETTINGS: dict[str, Any] = {"mode": "streaming", "window": 600, "lateness": 300, "trigger": 10}
LOCK = threading.Lock()


def parse(folder: Path, source: str = CLICKS, helper: str = "RATE = 1\n") -> DataflowSpec:
    folder.mkdir(exist_ok=True)
    (folder / "helper_of_clicks.py").write_text(helper)
    file = folder / "clicks.py"
    file.write_text(source)
    (flow,) = find_flows(str(file))
    return flow.spec


def fingerprint(folder: Path, *replaced: tuple[str, str], helper: str = "RATE = 1\n") -> str:
    source = CLICKS
    for old, new in replaced:
        assert old in source
        source = source.replace(old, new)
    stream = parse(folder, source, helper).stream
    assert stream is not None
    return stream.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        ("out(by_user(clicks()))", "# as it was\n        out(by_user(clicks()))"),
        ('window="10 minutes", lateness', "window=600, lateness"),
        ('mode="streaming"', 'mode="streaming", confirm="manual", hold_slot=True, retries=3, pool="p"'),
        ("schedule=None", 'schedule="@daily"'),
    ],
)
def test_what_changes_nothing(tmp_path: Path, change: tuple[str, str]) -> None:
    """Nor does another folder: versions of a bundle are in folders of their own."""
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two", change)


@pytest.mark.parametrize(
    "change",
    [
        ("F.sum(", "F.max("),
        ('"user")', '"user", "ts")'),
        ('F.window("ts", "10 minutes")', 'F.window("ts", "5 minutes")'),
        ("ts timestamp, user", "ts timestamp, at timestamp, user"),
        ("/data/clicks", "/data/others"),
        ("/data/by_user", "/data/by_others"),
        ("parallelism=8", "parallelism=4"),
        ('lateness="5 minutes"', 'lateness="6 minutes"'),
        ('mode="streaming"', 'mode="streaming", conf={"spark.executor.memory": "2g"}'),
        ('mode="streaming"', 'mode="streaming", channel="inbox"'),
        ("return rows\n", "return rows.where('amount > 0')\n"),
        ('event_time="ts",', 'event_time="ts", memory="2g",'),
        ('event_time="ts",', 'event_time="ts", start={"logOffset": 3},'),
    ],
)
def test_what_is_another_epoch(tmp_path: Path, change: tuple[str, str]) -> None:
    assert fingerprint(tmp_path / "one") != fingerprint(tmp_path / "two", change)


def name_sources(folder: Path, *replaced: tuple[str, str]) -> Mapping[str, str]:
    """The digests that an epoch's record gets of how its sources are read."""
    source = CLICKS
    for old, new in replaced:
        source = source.replace(old, new)
    spec = parse(folder, source)
    assert spec.stream is not None
    return make_wanted(spec.stream, spec.graph, "run", "folder").sources


@pytest.mark.parametrize(
    "change",
    [("ts timestamp, user", "ts timestamp, at timestamp, user"), ("/data/clicks", "/data/others"),
     ("return rows\n", "return rows.where('amount > 0')\n")],
)  # fmt: skip
def test_a_source_that_is_read_otherwise_is_known_by_its_digest(tmp_path: Path, change: tuple[str, str]) -> None:
    assert name_sources(tmp_path / "one") != name_sources(tmp_path / "two", change)


@pytest.mark.parametrize(
    "change", [("F.sum(", "F.max("), ('event_time="ts",', 'event_time="ts", start={"logOffset": 3},')]
)
def test_a_source_is_the_same_whatever_is_made_of_it_and_wherever_it_begins(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    assert name_sources(tmp_path / "one") == name_sources(tmp_path / "two", change)


def test_a_helper_of_the_bundle_counts_by_its_content(tmp_path: Path) -> None:
    change = ("return by_user\n", "\n            import helper_of_clicks\n            return by_user\n")
    one = fingerprint(tmp_path / "one", change)
    assert one == fingerprint(tmp_path / "two", change)
    assert one != fingerprint(tmp_path / "three", change, helper="RATE = 2\n")


def test_a_password_is_in_no_fingerprint(tmp_path: Path) -> None:
    """A short one could be guessed from it."""
    looks = [
        fingerprint(tmp_path / each, ('mode="streaming"', f'mode="streaming", conf={{"spark.x.password": "{each}"}}'))
        for each in ("one", "two")
    ]
    assert looks[0] == looks[1]


@task.spark_stream_source(format="json", path="/in", schema="ts timestamp", event_time="ts")
def events(rows):
    return rows


@task.spark_step(writes=Table("/out", mode="append"))
def locked(rows):
    with LOCK:
        return rows


@task.spark_step(writes=Table("/out", mode="append"))
def out(rows, client=None):
    return rows


def test_a_global_that_has_no_value_is_refused(dag: DAG) -> None:
    with pytest.raises(InvalidInput) as error, SparkDataflow("f", **SETTINGS):
        locked(events())
    assert str(error.value) == (
        "DAG 'sales', step 'f.locked': global 'LOCK' differs from one look to the next, so every parse would be "
        "another epoch: a stream's code must be told by its value; make what cannot be (locks, clients, clocks, random "
        "numbers) inside the function"
    )


def test_an_argument_that_has_no_value_is_refused(dag: DAG) -> None:
    with pytest.raises(InvalidInput, match=r"step 'f\.out': argument 'client' differs"), SparkDataflow("f", **SETTINGS):
        out(events(), client=[LOCK])


def test_a_variable_that_has_no_value_is_refused(dag: DAG) -> None:
    """Also one that a helper uses."""
    lock = threading.Lock()

    def help_out(rows: Any) -> Any:
        with lock:
            return rows

    @task.spark_step(writes=Table("/out", mode="append"))
    def guarded(rows):
        return help_out(rows)

    with (
        pytest.raises(InvalidInput, match=r"'f\.guarded': variable 'lock' of variable 'help_out' differs"),
        SparkDataflow("f", **SETTINGS),
    ):
        guarded(events())


def test_a_value_of_an_ordinary_task_counts_by_its_name(dag: DAG) -> None:
    """It is another object in each parse, and another value in each run."""

    @task
    def find_client():
        return 1

    with SparkDataflow("f", **SETTINGS) as flow:
        out(events(), client=find_client())
    assert flow.spec.stream is not None
    assert set(flow.spec.stream.code) == {"events", "out"}


UNSTEADY = """
import time
from airflow.sdk import DAG, task
from airflow_dagsched import SparkDataflow, Table
print("read")
BEGAN = time.time_ns()
NAMES = {name: len(name) for name in {"a", "bb", "ccc", "dddd"}}
SETTINGS = {"mode": "streaming", "window": 600, "lateness": 300, "trigger": 10}

@task.spark_stream_source(format="json", path="/in", schema="ts timestamp", event_time="ts")
def events(rows): return rows

@task.spark_step(writes=Table("/out", mode="append"))
def steady(rows): return rows.where(rows.ts.isin({*NAMES}))

@task.spark_step(writes=Table("/out", mode="append"))
def unsteady(rows): return rows.where(rows.ts > BEGAN)

with DAG("clicks", schedule=None), SparkDataflow("f", **SETTINGS):
    rows = events()
    steady.override(writes=Table("/steady", mode="append"))(rows)  # the first to be told, were it another one
    unsteady(rows)
"""


def test_a_fresh_process_finds_what_hangs_on_when_a_file_was_read(tmp_path: Path) -> None:
    """And nothing in a step whose sets are in another order there."""
    flow = parse(tmp_path, UNSTEADY)
    with pytest.raises(InvalidInput) as error:
        check_in_fresh_process(flow, str(tmp_path / "clicks.py"))
    begin = "DAG 'clicks', step 'f.unsteady': global 'BEGAN' differs in a fresh process, so every parse"
    assert str(error.value).startswith(begin)


def test_a_file_that_a_fresh_process_cannot_read(tmp_path: Path) -> None:
    flow = parse(tmp_path)
    file = tmp_path / "clicks.py"
    file.write_text("from airflow.sdk import DAG\nDAG.no_such_name\n")
    with pytest.raises(LaunchRefused, match=r"cannot be read in a fresh process: .*no_such_name"):
        check_in_fresh_process(flow, str(file))
