"""What launch tasks say of their run, one after another, and that none needs it to go on."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task
from msgspec.structs import replace

from airflow_dagsched import Interval, SparkDataflow
from airflow_dagsched.launch.history.forecast import Outlook
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.model.codec import encode_value, read_file
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.runtime.foresight import foretell_rest
from airflow_dagsched.provider.spec.run_facts import RunFacts


@pytest.fixture(autouse=True)
def _connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))


@pytest.fixture
def flow(dag: DAG, tmp_path: Path) -> SparkDataflow:
    """a ──> b, an application each: 8 s to start, then 50 s"""

    @task.spark_step(isolate=True, runtime_s=50)
    def a(spark: Any) -> Any:
        return spark.range(3)

    @task.spark_step(isolate=True, runtime_s=50)
    def b(rows: Any) -> Any:
        return rows

    with SparkDataflow("f", work_dir=str(tmp_path)) as made:
        b(a())
    return made


def facts(**feeds: Feed) -> RunFacts:
    return RunFacts(
        dag_id="sales", run_id="r", try_id=TryId(try_number=1), began=0.0, conf={}, interval=Interval("once"),
        context={}, states={}, skipped={}, feeds=feeds,
    )  # fmt: skip


def told(flow: SparkDataflow, at: int, folder: Path, **feeds: Feed) -> dict[str, Any]:
    return foretell_rest(flow.launches()[at].spec, facts(**feeds), PlannerHook("spark_default"), folder)


def test_launch_after_launch(flow: SparkDataflow, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """a ended at once: the run will end 58 s sooner than a's launch foresaw"""
    with caplog.at_level(logging.INFO):
        first = told(flow, 0, tmp_path)
        over = Feed("n", TryId(try_number=1), final=True, steps={"a": StepDone("a", "success")})
        then = told(flow, 1, tmp_path, **{"f.launch_a": over})
    assert first == {"groups": ["launch_a", "launch_b"], "seconds": 116.0, "later_s": 0.0}
    assert (then["groups"], then["seconds"], round(then["later_s"])) == (["launch_b"], 58.0, -58)
    assert "what is left ends in 58 s, 58 s sooner than planned: launch_b" in caplog.text


@pytest.mark.parametrize("content", [b"", b"{", b'{"round": "now"}'])
def test_a_torn_file_is_none(flow: SparkDataflow, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "outlook.json").write_bytes(content)
    assert told(flow, 0, tmp_path)["seconds"] == 116.0


def test_one_of_other_launch_tasks_is_none(flow: SparkDataflow, tmp_path: Path) -> None:
    """As when the plan file was written anew during the run; when it was to end is still known."""
    told(flow, 0, tmp_path)
    file = tmp_path / "outlook.json"
    before = read_file(Outlook, file)
    file.write_bytes(encode_value(replace(before, plan=replace(before.plan, groups=before.plan.groups[:1]))))
    assert round(told(flow, 1, tmp_path)["later_s"]) == -58
    assert len(read_file(Outlook, file).plan.groups) == 2


def test_without_it_a_launch_goes_on(
    flow: SparkDataflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "yarn"}))
    assert told(flow, 0, tmp_path) == {}
    assert (
        "what is left of the run is not foretold: LaunchRefused: spark_default: master 'yarn' can't be" in caplog.text
    )


def test_of_one_group_there_is_nothing_to_foretell(dag: DAG, tmp_path: Path) -> None:
    with SparkDataflow("g", work_dir=str(tmp_path)) as alone:

        @task.spark_step
        def a(spark: Any) -> Any:
            return spark.range(3)

        a()
    assert told(alone, 0, tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
