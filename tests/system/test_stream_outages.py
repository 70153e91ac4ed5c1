"""What becomes of a stream when parts of Airflow stand still or die: one driver all the time, and no gap."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from demo import processes
from demo.rest import Run, until
from demo.standalone import AirflowStandalone, airflow_command
from tests.system.lab import PATIENCE_S, Lab, gone, kill
from tests.system.streams import LAUNCH, Stream, open_stream

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]

SETTINGS = {
    # A worker killed hard is noticed when its heartbeat stops: after five minutes, if nobody says otherwise.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    # A task ends by itself after three heartbeats that failed, each after so many tries: else minutes later.
    "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "2",
}
FROZEN_S = 300.0
BESIDE = """
import os, time
from pathlib import Path
from airflow.sdk import DAG, task

with DAG("beside", schedule=None, catchup=False):

    @task
    def wait():
        Path(os.environ["AIRFLOW_HOME"], "beside.pid").write_text(str(os.getpid()))
        while True:
            time.sleep(1)

    wait()
"""


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    with open_stream(tmp_path, SETTINGS, beside=BESIDE) as stream:
        # A machine that is too busy may use one before the task begins: that is not what is looked at here.
        stream.edit("retries=1", "retries=5")
        yield stream


def find_part(airflow: AirflowStandalone, part: str) -> list[psutil.Process]:
    """The processes of a component of Airflow."""
    below = psutil.Process(airflow.pid).children(recursive=True)
    heads = [each for each in below if part in each.cmdline() or f"airflow {part}" in " ".join(each.cmdline())]
    found = {process.pid: process for head in heads for process in (head, *head.children(recursive=True))}
    assert found, f"no {part} among {[each.cmdline() for each in below]}"
    return list(found.values())


@contextmanager
def frozen(stood: list[psutil.Process]) -> Iterator[None]:
    """What stands still for a while."""
    for each in stood:
        each.suspend()
    try:
        yield
    finally:
        for each in stood:
            each.resume()


@contextmanager
def another_triggerer(airflow: AirflowStandalone) -> Iterator[None]:
    """In place of one that was killed, which nobody starts again."""
    program = processes.start([airflow_command(), "triggerer"], airflow.env, airflow.log, airflow.home)
    try:
        yield
    finally:
        processes.stop(program)


def start_waiter(lab: Lab) -> psutil.Process:
    """An ordinary task that runs for ever."""
    lab.start("beside")
    said = until("the task beside", lambda: read_number(lab.home / "beside.pid"), PATIENCE_S)
    return psutil.Process(said)


def read_number(file: Path) -> int | None:
    """None until it is written."""
    text = file.read_text() if file.exists() else ""
    return int(text) if text else None


def start_and_kill_worker(stream: Stream) -> tuple[Run, int]:
    """The worker of the launch task is killed when it has started the driver, and before the queries run; the run, and
    its try that ended so.
    """
    stream.feed(4)
    run = stream.lab.start("clicks")
    stream.wait("a driver", lambda: bool(stream.find_drivers()))
    (driver,) = stream.find_drivers()
    task = driver.parent()
    assert task is not None, "the launch task has ended"
    tries = stream.count_tries(run)
    kill(filter(None, [task.parent(), task]))
    assert stream.story.epochs[1].started is None
    return run, tries


def assert_one_driver(stream: Stream, driver: psutil.Process) -> None:
    assert [each.pid for each in stream.find_drivers()] == [driver.pid]


def test_a_stream_outlives_whatever_of_airflow_fails(stream: Stream) -> None:
    lab = stream.lab
    run, killed = start_and_kill_worker(stream)
    (driver,) = stream.find_drivers()
    lab.until_state(run, LAUNCH, "deferred")
    # The try that was killed is the only one that is used.
    assert stream.count_tries(run) == killed + 1
    stream.goes_on()
    assert_one_driver(stream, driver)

    # Longer than any running task outlives.
    waiter, began = start_waiter(lab), time.monotonic()
    with frozen(find_part(lab.airflow, "api_server")):
        stream.flow_until(
            "five minutes, and the end of the task beside",
            lambda: gone([waiter], 0.0) and time.monotonic() - began > FROZEN_S,
        )
        stream.goes_on()
    assert lab.states(run)[LAUNCH] == "deferred"
    assert_one_driver(stream, driver)

    # Whoever follows the stream is lost for a while.
    kill(find_part(lab.airflow, "triggerer"))
    stream.goes_on()
    with another_triggerer(lab.airflow):
        stream.goes_on()
        assert_one_driver(stream, driver)
        # That it is followed again is to be seen by what a follower does.
        driver.kill()
        assert gone([driver], PATIENCE_S)
        stream.wait("another driver", lambda: bool(stream.find_drivers()))
        stream.goes_on()
        lab.until_state(run, LAUNCH, "deferred")
        assert (len(stream.find_drivers()), stream.count_tries(run)) == (1, killed + 1)
        stream.stop()
        assert lab.end(run) == "success"
    assert list(stream.story.epochs) == [1]
    stream.prove_table()
