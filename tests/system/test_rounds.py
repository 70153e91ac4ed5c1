"""Rounds of a run: cleared while it is at work, deleted and made again, given up while its worker stands still.

On PostgreSQL, where clears and launches really overlap. Each scenario has a DAG of its own (``dags/rounds.py``): its
input says 1 at first, and 2 once a person has corrected it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from demo.rest import Run, until
from tests.system.lab import ON_POSTGRES, PATIENCE_S, Lab, gone, kill, open_lab

pytestmark = ON_POSTGRES

LAUNCH, PRICES, TOTALS = "shop.launch", "shop.prices", "shop.totals"
ENDS_WITHIN_S = 60.0
SETTINGS = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory.mktemp("rounds"), SETTINGS) as lab:
        yield lab


def write_input(lab: Lab, dag_id: str, price: int) -> None:
    """What the steps of a DAG read from now on."""
    _input(lab, f"{dag_id}.txt").write_text(str(price))


def _input(lab: Lab, name: str) -> Path:
    folder = lab.home / "inputs"
    folder.mkdir(exist_ok=True)
    return folder / name


def assert_rows(lab: Lab, dag_id: str, price: int) -> None:
    """Both tables are of this price alone, each row once."""
    assert lab.rows(f"{dag_id}/prices") == [(("id", number), ("price", price)) for number in range(4)]
    assert lab.rows(f"{dag_id}/totals") == [(("total", 4 * price),)]


def assert_green(lab: Lab, run: Run) -> None:
    states = lab.states(run)
    assert {name: state for name, state in states.items() if state not in ("success", "removed")} == {}, lab.last_log(
        run, LAUNCH
    )


def made_again(lab: Lab, run: Run, price: int) -> Run:
    """The run is deleted, the input corrected, and a run with its id and its dates takes its place."""
    dates = lab.client.call("GET", run.path)
    until(f"the executor's word on {run.run_id}", lambda: is_reported(lab, run) or None, PATIENCE_S)
    lab.client.delete_run(run)
    write_input(lab, run.dag_id, price)
    body = {name: dates[name] for name in ("logical_date", "data_interval_start", "data_interval_end", "dag_run_id")}
    lab.client.call("POST", f"/api/v2/dags/{run.dag_id}/dagRuns", body=body)
    return run


def is_reported(lab: Lab, run: Run) -> bool:
    """Whether the executor has told the scheduler how each task of the run ended, which it does a while after they do.

    Tasks of a run made again have the keys of the first one's: Airflow would take a late word for theirs.
    """
    lines = lab.airflow.log.read_text().splitlines()
    enqueued = sum(line.count(f" {run.run_id} [") for line in lines if "Trying to enqueue tasks" in line)
    reported = sum(f"run_id='{run.run_id}'" in line for line in lines if "Received executor event" in line)
    return enqueued == reported


def test_cleared_with_downstream_while_it_runs(lab: Lab) -> None:
    """
    try 1   prices(1) ── totals ▒ at the gate       the input is corrected, launch task and all below it are cleared
    try 2                  prices(2) ── totals(2) ── publish

    No mirror turns green again before the second try has written.
    """
    write_input(lab, "cleared", 1)
    lab.close("cleared-totals")
    run = lab.start("cleared")
    lab.wait_reached("cleared-totals")
    lab.until_state(run, PRICES, "success")
    lab.close("cleared-prices")
    write_input(lab, "cleared", 2)
    lab.client.clear(run, [LAUNCH], downstream=True)

    def second_try_reads() -> bool | None:
        states = lab.states(run)
        assert "success" not in (states[PRICES], states[TOTALS]), states
        return (lab.home / "gates" / "cleared-prices.reached").exists() or None

    until("the second try", second_try_reads, PATIENCE_S, every_s=0.2)
    lab.open("cleared-prices")
    lab.open("cleared-totals")
    assert lab.end(run) == "success", lab.states(run)
    assert_green(lab, run)
    assert_rows(lab, "cleared", 2)
    assert [made["clear_number"] for made in lab.manifests(run)] == [0, 1]


def test_deleted_and_made_again(lab: Lab) -> None:
    """
    run      prices(1) ── totals(1)
    again    prices ▒ ✗ its driver is killed         all red: nothing of the first run's events is taken for its own
             prices(2) ── totals(2)                  cleared, it mends
    again    prices(3) ── totals(3)
    """
    write_input(lab, "again", 1)
    run = lab.start("again")
    assert lab.end(run) == "success", lab.last_log(run, LAUNCH)
    assert_rows(lab, "again", 1)

    lab.close("again-prices")
    made_again(lab, run, 2)
    lab.wait_reached("again-prices")
    kill(lab.applications("again"))
    assert lab.end(run) == "failed", lab.states(run)
    expected = dict.fromkeys((LAUNCH, PRICES, TOTALS), "failed") | {"publish": "upstream_failed"}
    assert lab.states(run).items() >= expected.items()
    assert_rows(lab, "again", 1)

    lab.open("again-prices")
    lab.client.clear(run, list(lab.states(run)), only_failed=True)
    assert lab.end(run) == "success", lab.last_log(run, LAUNCH)
    assert_green(lab, run)
    assert_rows(lab, "again", 2)

    made_again(lab, run, 3)
    assert lab.end(run) == "success", lab.last_log(run, LAUNCH)
    assert_green(lab, run)
    assert_rows(lab, "again", 3)
    incarnations = [made["incarnation"] for made in lab.manifests(run)]
    assert incarnations == sorted(incarnations)
    assert len(set(incarnations)) == 3


def test_first_step_is_renamed(lab: Lab) -> None:
    """
    prices(1) ── totals(1)       renamed, corrected, cleared on the latest version:   costs(2) ── totals(2)

    With its name the run loses where it keeps when it began; it is a later one then, never an earlier one.
    """
    write_input(lab, "renamed", 1)
    run = lab.start("renamed")
    assert lab.end(run) == "success", lab.last_log(run, LAUNCH)
    _input(lab, "renamed.step").write_text("costs")
    parse_again(lab, "renamed", "shop.costs")
    write_input(lab, "renamed", 2)
    body = {
        "dry_run": False,
        "dag_run_id": run.run_id,
        "only_failed": False,
        "reset_dag_runs": True,
        "run_on_latest_version": True,
    }
    lab.client.call("POST", "/api/v2/dags/renamed/clearTaskInstances", body=body)
    assert lab.end(run) == "success", lab.states(run)
    assert_green(lab, run)
    assert lab.states(run)["shop.costs"] == "success"
    assert_rows(lab, "renamed", 2)
    first, second = (made["incarnation"] for made in lab.manifests(run))
    assert first < second


def parse_again(lab: Lab, dag_id: str, task_id: str) -> None:
    """Have the DAG's file parsed, until the task is there."""
    token = lab.client.call("GET", f"/api/v2/dags/{dag_id}/details")["file_token"]
    lab.client.call("PUT", f"/api/v2/parseDagFile/{token}")

    def there() -> bool | None:
        known = lab.client.call("GET", f"/api/v2/dags/{dag_id}/tasks")["tasks"]
        return any(each["task_id"] == task_id for each in known) or None

    until(f"{task_id} of {dag_id}", there, PATIENCE_S)


def test_launch_frozen_beyond_its_heartbeat_wakes(lab: Lab) -> None:
    """
    try 1   prices(1) ── totals ▒ at the gate ┄┄┄ frozen ┄┄┄┄┄┄┄┄┄┄┄┄ wakes, and is at the gate's other side ✗
    try 2                                      prices reused ── totals ▒ the gate opens ── totals

    Both go on at one moment: what the first says and writes counts for nothing.
    """
    write_input(lab, "frozen", 1)
    lab.close("frozen-totals")
    run = lab.start("frozen")
    lab.wait_reached("frozen-totals")
    lab.until_state(run, PRICES, "success")
    asleep = family_of(lab, run)
    send(asleep, signal.SIGSTOP)
    (lab.home / "gates" / "frozen-totals.reached").unlink()
    lab.wait_reached("frozen-totals")
    lab.open("frozen-totals")
    send(asleep, signal.SIGCONT)
    assert lab.end(run) == "success", lab.states(run)
    assert gone(asleep[1:], ENDS_WITHIN_S), "what woke goes on for ever"
    assert_green(lab, run)
    assert_rows(lab, "frozen", 1)
    feed = lab.client.xcom(run, LAUNCH, "dagsched")
    assert feed["try_id"]["try_number"] == 2
    assert {step: done["state"] for step, done in feed["steps"].items()} == {"prices": "reused", "totals": "success"}
    assert lab.events(run) == sorted(f"file://{lab.home}/tables/frozen/{name}" for name in ("prices", "totals"))
    assert [made["try_number"] for made in lab.manifests(run)] == [1, 2]


def family_of(lab: Lab, run: Run) -> list[psutil.Process]:
    """Supervisor, task process, spark-submit and driver program of a run's last launch."""
    task = psutil.Process(lab.manifests(run)[-1]["launcher_pid"])
    supervisor: Any = task.parent()
    return [supervisor, task, *task.children(recursive=True)]


def send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        process.send_signal(number)
