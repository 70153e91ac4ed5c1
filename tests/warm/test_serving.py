"""Runs in one application, and what ends it: by real relays, hosts and Spark."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.warm.messages import RunAsked, encode_message
from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.private_socket import connect_to, send_text
from airflow_dagsched.provider.warm.applications import tell_end
from tests.warm import held
from tests.warm.kit import Begun, Lab, flow_of, list_processes, name_parts, open_lab, wait_until

pytestmark = [pytest.mark.spark]


def rows(spark: Any) -> Any:
    return spark.range(10)


def total(rows: Any) -> int:
    print("counted")
    return int(rows.count())


def tell_run(spark: Any) -> list[Any]:
    """What the step, and a Python process of Java's, see of the run's own environment."""
    import os

    name = "AIRFLOW_CTX_DAG_RUN_ID"
    seen = spark.sparkContext.parallelize([1], 1).map(lambda _: os.environ.get(name)).collect()
    return [os.environ[name], *seen]


def wait(spark: Any) -> None:
    import time

    print("waits", flush=True)
    time.sleep(600)


def fail(spark: Any) -> None:
    raise ValueError("no such thing")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with open_lab(tmp_path) as lab:
        yield lab


def find_host(lab: Lab) -> dict[str, int]:
    """Processes of the only application, by what they are; those that are there."""
    return name_parts(list_processes(str(lab.list_warm()[0].folder)))


def begin_waiting(lab: Lab) -> Begun:
    begun = lab.begin(flow_of(wait, dated=True))
    wait_until(lambda: lab.list_warm() and "run" in find_host(lab), "a run at work", 400)
    wait_until(lambda: begun.has_said("waits"), "the step is called", 60)
    return begun


def test_runs_go_on_in_one_application_until_one_fails(lab: Lab) -> None:
    """Equal rows, one application; a run that failed ends it, and says why as a cold one does."""
    first, second = (lab.run(flow_of(rows, total, dated=True)) for _ in range(2))
    assert (first.number, second.number) == (1, 2), second.output
    assert first.application == second.application
    assert first.values == second.values == {"rows": None, "total": 10}
    assert second.lines == ["counted"]
    failed = lab.run(flow_of(fail, dated=True))
    assert (failed.code, failed.number) == (1, 3)
    assert "no such thing" in str([each for each in failed.events if getattr(each, "failure", None)])
    assert not lab.list_warm()


def test_no_run_sees_what_airflow_says_of_another(lab: Lab) -> None:
    for run in ("first", "second"):
        served = lab.run(flow_of(tell_run, dated=True), environment={"AIRFLOW_CTX_DAG_RUN_ID": run})
        assert served.values == {"tell_run": [run, None]}, served.output
    assert served.number == 2


def test_a_new_application_waits_for_whoever_started_it(lab: Lab) -> None:
    """Another that comes between gets one of its own: it would wait for a run, and end with it, that is not its own."""
    hold = lab.folder / "hold"
    hold.write_text("before the manifest is handed over")
    lab.variables[held.VARIABLE] = str(hold)
    lab.relay = (sys.executable, held.__file__, "relay")
    first = lab.begin(flow_of(rows, total, dated=True))
    wait_until((lab.folder / held.REACHED).exists, "the first is about to hand its manifest over", 400)
    lab.relay = ()
    second = lab.run(flow_of(rows, total, dated=True))
    hold.unlink()
    assert (second.code, second.number) == (0, 1), second.output
    ended = first.end()
    assert (ended.code, ended.number) == (0, 1), ended.output
    assert ended.application != second.application


@pytest.mark.warm
def test_who_asked_and_did_not_wait_ends_no_application(lab: Lab) -> None:
    """It was asked while it could not answer, and whoever asked has gone elsewhere by then."""
    first = lab.run(flow_of(rows, total, dated=True))
    wait_until(lambda: (status := lab.find_status()) and status.state == "idle", "it is clean")
    (application,), host = lab.list_warm(), find_host(lab)["host"]
    os.kill(host, signal.SIGSTOP)
    with (lab.folder / "out").open("w") as out, connect_to(application.folder) as link:
        asked = RunAsked("manifest", {}, str(lab.folder))
        send_text(link, encode_message(asked), (out.fileno(), out.fileno()))
    os.kill(host, signal.SIGCONT)
    second = lab.run(flow_of(rows, total, dated=True))
    assert (second.number, second.application) == (2, first.application), second.output


@pytest.mark.warm
def test_a_launch_that_is_told_to_end_says_its_last_word(lab: Lab) -> None:
    """As a driver of its own does at SIGTERM; the application goes with it."""
    begun = begin_waiting(lab)
    begun.relay.send_signal(signal.SIGTERM)
    served = begun.end()
    assert served.finished is not None
    assert served.finished.failure is not None
    assert served.finished.failure.message == "stopped: the driver was told to end"
    wait_until(lambda: not lab.list_warm(), "the application ends")


@pytest.mark.warm
def test_it_ends_after_its_runs_and_its_time(tmp_path: Path) -> None:
    with open_lab(tmp_path / "runs", terms=Terms(60.0, 2)) as lab:
        numbers = [lab.run(flow_of(rows, total, dated=True)).number for _ in range(3)]
        assert numbers == [1, 2, 1]
        (application,) = lab.list_warm()
        tell_end(application, "it is told to")
        wait_until(lambda: not lab.list_warm(), "it ends")
    with open_lab(tmp_path / "time", terms=Terms(0.5, 50)) as lab:
        assert lab.run(flow_of(rows, total, dated=True)).code == 0
        wait_until(lambda: not lab.list_warm(), "its time is over")


@pytest.mark.warm
def test_it_waits_as_long_as_the_last_run_says(lab: Lab) -> None:
    """Whatever was said when it was started."""
    waits = []
    for number, idle_s in enumerate((200.0, 20.0, 500.0), 1):
        lab.terms = Terms(idle_s, 50)
        assert lab.run(flow_of(rows, total, dated=True)).number == number
        wait_until(lambda: (status := lab.find_status()) and status.state == "idle", "it is clean")
        status = lab.find_status()
        assert status is not None
        waits.append(status.ends_in_s or 0.0)
    first, second, third = waits
    assert 20.0 < first <= 200.0
    assert 0.0 < second <= 20.0
    assert 200.0 < third <= 500.0


@pytest.mark.warm
def test_one_that_is_to_wait_no_longer_ends(lab: Lab) -> None:
    assert lab.run(flow_of(rows, total, dated=True)).number == 1
    lab.terms = Terms(0.5, 50)
    assert lab.run(flow_of(rows, total, dated=True)).number == 2
    wait_until(lambda: not lab.list_warm(), "its time is over")


@pytest.mark.warm
def test_other_settings_or_less_memory_are_another_application(lab: Lab) -> None:
    first = lab.run(flow_of(rows, total, dated=True))
    lab.settings["spark.driver.memory"] = "600m"
    smaller = lab.run(flow_of(rows, total, dated=True))
    assert (smaller.application, smaller.number) == (first.application, 2)
    lab.settings["spark.sql.shuffle.partitions"] = "3"
    other = lab.run(flow_of(rows, total, dated=True))
    assert other.application != first.application
    lab.settings["spark.driver.memory"] = "800m"
    larger = lab.run(flow_of(rows, total, dated=True))
    assert larger.application not in (first.application, other.application)


@pytest.mark.warm
def test_a_changed_module_ends_it(tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "own.py").write_text("x = 1\n")
    with open_lab(tmp_path / "lab", roots=(modules,)) as lab:
        first = lab.run(flow_of(rows, total, dated=True))
        (modules / "own.py").write_text("x = 22\n")
        second = lab.run(flow_of(rows, total, dated=True))
        assert second.number == 1
        assert second.application != first.application
        wait_until(lambda: len(lab.list_warm()) == 1, "the first one ends")


@pytest.mark.warm
def test_one_whose_launch_died_while_it_started_ends(lab: Lab) -> None:
    begun = lab.begin(flow_of(rows, total, dated=True))
    wait_until(lambda: any(lab.warm.iterdir()), "it is being started", 60)
    os.killpg(begun.relay.pid, signal.SIGKILL)
    begun.relay.wait(60)
    wait_until(lambda: not lab.list_warm(), "it ends", 200)
