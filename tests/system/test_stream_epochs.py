"""A deploy in a real Airflow: each edit of a DAG file with a stream makes one run, and nothing else does.

The launch task is played by an ordinary one: it asks for an epoch in the log, and ends when another has replaced it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import name_flow
from airflow_dagsched.switch.records import Aborted
from demo.rest import until
from demo.standalone import AirflowStandalone

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.airflow]

DAG_FILE = """
import time
from pathlib import Path

from airflow.sdk import DAG, task

from airflow_dagsched import StreamEpochs
from airflow_dagsched.provider.streaming.stream_epochs import fill_epochs
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import name_flow
from airflow_dagsched.switch.records import Aborted, Epoch

CODE = "one"

with DAG("clicks", schedule=StreamEpochs("clicks"), max_active_runs=3, catchup=False) as dag:

    @task
    def launch(run_id=None):
        log = FlowLog(name_flow(Path("WORK"), "clicks", "clicks").log)

        def replace(story, n, at):
            new = story.successor
            return Aborted(n=n, at=at, epoch=new, reason="replaced") if new else None

        def ask(story, n, at):
            return Epoch(n=n, at=at, epoch=len(story.epochs) + 1, fingerprint=CODE, run_id=run_id)

        log.append(replace)
        mine = log.append(ask).epoch
        while log.story.successor == mine:
            time.sleep(0.5)
            log.read()

    launch()
    fill_epochs(dag, "clicks", "launch", "WORK", CODE)
"""
SETTINGS = {"AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "3", "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3"}
WITHIN_S = 240.0
"""For what takes seconds on an idle machine: a deadline, no measurement."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "dags").mkdir()
    file = tmp_path / "dags" / "clicks.py"
    file.write_text(DAG_FILE.replace("WORK", str(tmp_path / "work")))
    return file


@pytest.fixture
def airflow(tmp_path: Path, file: Path) -> Iterator[AirflowStandalone]:
    root = str(Path(__file__).parents[2])
    with AirflowStandalone(tmp_path / "home", file.parent, env={**SETTINGS, "PYTHONPATH": root}) as airflow:
        yield airflow


def wait_for_code(log: FlowLog, epoch: int, code: str) -> None:
    def is_there() -> bool | None:
        log.read()
        found = log.story.epochs.get(epoch)
        return True if found is not None and found.record.fingerprint == code else None

    until(f"epoch {epoch} of code {code!r}", is_there, WITHIN_S)


def list_runs(airflow: AirflowStandalone) -> list[str]:
    found = airflow.client.call("GET", "/api/v2/dags/clicks/dagRuns", params={"order_by": "run_after"})
    return [run["state"] for run in found["dag_runs"]]


def test_each_edit_makes_one_run(tmp_path: Path, file: Path, airflow: AirflowStandalone) -> None:
    log = FlowLog(name_flow(tmp_path / "work", "clicks", "clicks").log)
    airflow.client.wait_for_dag("clicks")
    assert list_runs(airflow) == []  # it is paused
    airflow.client.pause("clicks", paused=False)
    wait_for_code(log, 1, "one")
    file.write_text(file.read_text().replace('"one"', '"two"'))
    wait_for_code(log, 2, "two")
    until("the old run's end", lambda: list_runs(airflow) == ["success", "running"] or None, WITHIN_S)
    file.write_text(file.read_text().replace('"two"', '"one"'))
    wait_for_code(log, 3, "one")
    log.append(lambda story, n, at: Aborted(n=n, at=at, epoch=3, reason="enough", x_cause="person"))
    until("the last run's end", lambda: list_runs(airflow) == ["success"] * 3 or None, WITHIN_S)
    events = airflow.client.call("GET", "/api/v2/assets/events", params={"limit": 50})["asset_events"]
    assert [each["extra"]["payload"]["fingerprint"] for each in events] == ["one", "two", "one"]
    assert {each["extra"]["payload"]["reason"] for each in events} == {"changed"}
    assert {each["name"] for each in events} == {"clicks/clicks"}
