"""The asset in its DAG: an edit of the code changes what Airflow stores of the watcher, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, Asset, task
from airflow.serialization.serialized_objects import DagSerialization

from airflow_dagsched import StreamEpochs
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.provider.commands.bag import find_flows
from airflow_dagsched.provider.streaming.stream_epochs import fill_epochs
from tests.provider.streams.test_parse import CLICKS

Schedule = Callable[[], Any]


def parse(code: str, dag_id: str = "dag", schedule: Schedule = lambda: StreamEpochs("clicks"), runs: int = 3) -> DAG:
    """A DAG as its file has it, with a stream ``clicks`` of this fingerprint."""
    with DAG(dag_id, schedule=schedule(), max_active_runs=runs, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:

        @task
        def launch() -> None: ...

        launch()
        fill_epochs(dag, "clicks", "launch", "/work", code)
    return dag


def list_stored(dag: DAG) -> list[Any]:
    """The assets of the schedule as Airflow reads them from what it stored."""
    stored = json.loads(json.dumps(DagSerialization.to_dict(dag)))
    return [asset for _, asset in DagSerialization.from_dict(stored).timetable.asset_condition.iter_assets()]


def test_the_watcher_is_stored_with_the_fingerprint() -> None:
    (asset,) = list_stored(parse("one"))
    assert (asset.name, asset.uri) == ("dag/clicks", "dag/clicks")
    (watcher,) = asset.watchers
    assert watcher.trigger == {
        "classpath": "airflow_dagsched.provider.streaming.epoch_trigger.EpochTrigger",
        "kwargs": {
            "dag_id": "dag", "flow": "clicks", "launch": "launch", "work_dir": "/work", "fingerprint": "one",
        },
    }  # fmt: skip


def test_only_an_edit_changes_the_watcher() -> None:
    def read(dag: DAG) -> Any:
        return list_stored(dag)[0].watchers[0].trigger

    assert read(parse("one")) == read(parse("one")) != read(parse("two"))


def test_wired_again_it_is_the_same() -> None:
    dag = parse("one")
    fill_epochs(dag, "clicks", "launch", "/work", "one")
    assert list_stored(dag) == list_stored(parse("one"))


def test_two_dags_share_no_asset() -> None:
    assert list_stored(parse("one", "a"))[0].name != list_stored(parse("one", "b"))[0].name


@pytest.mark.parametrize(
    "schedule",
    [
        lambda: [StreamEpochs("clicks")],
        lambda: StreamEpochs("clicks") | Asset("table"),
        lambda: Asset("table") | StreamEpochs("clicks"),
    ],
)
def test_it_may_be_one_of_several(schedule: Schedule) -> None:
    filled = {asset.name: asset.watchers for asset in list_stored(parse("one", schedule=schedule))}
    assert len(filled["dag/clicks"]) == 1
    assert filled.get("table", []) == []


def test_a_schedule_without_it_stays_as_it_is() -> None:
    assert list_stored(parse("one", schedule=lambda: Asset("table"), runs=1))[0].watchers == []
    assert DagSerialization.to_dict(parse("one", schedule=lambda: None, runs=1))


@pytest.mark.parametrize(
    ("schedule", "runs", "said"),
    [
        (lambda: StreamEpochs("clicks"), 1, "max_active_runs: is 1: .*write 3"),
        (lambda: [StreamEpochs("clicks"), StreamEpochs("b")], 3, "waits for both 'clicks' and 'b'.*join them with ."),
        (lambda: StreamEpochs("clicks") & Asset("table"), 3, "waits for both 'clicks' and 'table'"),
        (lambda: StreamEpochs("click"), 3, r"'click'\) and none for stream 'clicks': write StreamEpochs\('clicks'\)"),
    ],
)
def test_a_schedule_that_would_switch_nothing_is_refused(schedule: Schedule, runs: int, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse("one", schedule=schedule, runs=runs)


def test_one_that_names_no_stream_makes_the_dag_an_import_error() -> None:
    dag = DAG("dag", schedule=StreamEpochs("click"), start_date=datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(Exception, match=r"StreamEpochs\('click'\).*no streaming dataflow of this name"):
        DagSerialization.to_dict(dag)


def write_file(folder: Path, named: str, source: str = CLICKS) -> Path:
    """The DAG file of the docs, scheduled by the stream of this name."""
    file = folder / "clicks.py"
    imported = source.replace("import SparkDataflow", "import SparkDataflow, StreamEpochs")
    file.write_text(imported.replace("schedule=None", f"schedule=StreamEpochs({named!r})"))
    return file


def test_the_dataflow_fills_it_when_its_block_ends(tmp_path: Path) -> None:
    (flow,) = find_flows(str(write_file(tmp_path, "clicks")))
    (launch,) = flow.launches()
    assert flow.spec.stream is not None
    assert list_stored(flow.dag)[0].watchers[0].trigger["kwargs"] == {
        "dag_id": "clicks",
        "flow": "clicks",
        "launch": launch.task_id,
        "work_dir": flow.spec.work_dir,
        "fingerprint": flow.spec.stream.fingerprint,
    }


def test_an_edit_of_a_step_is_another_watcher_and_a_comment_is_none(tmp_path: Path) -> None:
    def read(source: str) -> Any:
        (flow,) = find_flows(str(write_file(tmp_path, "clicks", source)))
        return list_stored(flow.dag)[0].watchers[0].trigger

    assert read(CLICKS) == read(CLICKS + "# well done\n") != read(CLICKS.replace("F.sum(", "F.max("))


def test_a_stream_of_another_name_is_refused_at_parse(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="none for stream 'clicks'"):
        find_flows(str(write_file(tmp_path, "click")))
