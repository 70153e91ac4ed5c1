"""An Airflow that lacks what dataflows lean on: a triggerer of ten slots, an API server that is away for five minutes.

On PostgreSQL: SQLite hands out the ids of deleted triggers again, which can wedge a triggerer by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.system.lab import ON_POSTGRES, Lab, open_lab

pytestmark = ON_POSTGRES

CAPACITY = 10
AWAY_S = 300.0
SETTINGS = {
    "AIRFLOW__TRIGGERER__CAPACITY": str(CAPACITY),
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
    # Attempts of each request. The default, 5, ends a task without heartbeats after up to five minutes, this after two.
    "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "4",
    # Airflow's own: with more a task outlives the whole outage, and no try is lost that could be given back.
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "5",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory.mktemp("scarce"), SETTINGS) as lab:
        yield lab


def test_mirrors_leave_the_triggerer_to_others(lab: Lab) -> None:
    """
    slots  [ waits | waits | waits |  |  |  |  |  |  |  ]   then 12 mirrors of crowded, 2 of few

    Mirrors that took their slots before their launch task runs would leave none for what that waits for.
    """
    runs = [lab.start(dag_id) for dag_id in ("crowded", "few", "watching")]
    mirrors = [task_id for task_id in lab.states(runs[0], "flow") if not task_id.startswith("launch")]
    assert len(mirrors) > CAPACITY
    for run in runs:
        assert lab.end(run) == "success", lab.states(run)
        assert set(lab.states(run).values()) == {"success"}
    assert lab.rows("crowded") == [(("id", number), ("steps", len(mirrors) - 2)) for number in range(10)]


def test_api_server_is_away(lab: Lab) -> None:
    """
    API server  ----.                    .-------
    launch task  early* | late |  x        x       x | early reused, late* |       x: could not begin

    Airflow ends a task that could send no heartbeat for a while, and others can't begin. More tries are lost than the
    task has, which is to be retried once; they don't count. The rows are there once.
    """
    lab.close("away")
    run = lab.start("away")
    lab.wait_reached("away")
    with api_server_away(lab):
        time.sleep(AWAY_S)
        lab.open("away")
    assert lab.end(run) == "success", lab.logs(run, "flow.launch", 2)
    assert set(lab.states(run).values()) == {"success"}
    (launch,) = [each for each in lab.client.task_instances(run) if each["task_id"] == "flow.launch"]
    assert launch["max_tries"] > 1, "no lost try was given back"
    assert lab.rows("away/early") == [(("id", number),) for number in range(5)]
    assert lab.rows("away/late") == [(("id", number * 2),) for number in range(5)]


@contextmanager
def api_server_away(lab: Lab) -> Iterator[None]:
    """Inside the block the API server answers nothing; connections to it stand."""
    servers = [process for process in psutil.Process(lab.airflow.pid).children(recursive=True) if _is_api(process)]
    assert servers
    for process in servers:
        process.suspend()
    try:
        yield
    finally:
        for process in servers:
            process.resume()


def _is_api(process: psutil.Process) -> bool:
    try:
        words = " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return False
    return "api-server" in words or "api_server" in words
