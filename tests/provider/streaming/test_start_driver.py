"""Drivers as processes of their own: how they are started, and that a second one is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.streams.private_folder import COMMAND
from airflow_dagsched.provider.streaming.start_driver import start_detached
from airflow_dagsched.switch.advising.situation import count_start
from airflow_dagsched.switch.log.signs_files import place_order, read_orders, read_starts, write_ended
from airflow_dagsched.switch.log.spawned import START_WITHIN_S, UNSEEN_S, is_starting, read_spawned, write_spawned
from airflow_dagsched.switch.places import EpochPlaces, name_flow
from airflow_dagsched.switch.signs import Ended, Starts
from tests.provider.streaming.flows import Flow, write_epoch
from tests.switch.drawn import make_batch, make_epoch, make_started, make_stopped, tell

WRITES = """
import os, sys
print("begins", os.environ["STREAM"], os.getsid(0) == os.getpid(), flush=True)
open(sys.argv[1], "w").close()     # a fifo: whoever reads it lets this go on
print("goes on", flush=True)
open(sys.argv[2], "w").close()
"""
PARENT = """
import sys
from pathlib import Path
from airflow_dagsched.provider.streaming.start_driver import start_detached
from airflow_dagsched.switch.places import EpochPlaces
print(start_detached(EpochPlaces(Path(sys.argv[1])), Path(sys.argv[2])))
"""


def make_places(work_dir: Path) -> EpochPlaces:
    return name_flow(work_dir, "dag", "flow").name_epoch("0000000a")


def test_a_driver_outlives_whoever_started_it(tmp_path: Path):
    """In a session of its own, with what it prints in its own file, and the environment it was given."""
    places, fifos = make_places(tmp_path), [tmp_path / "first", tmp_path / "second"]
    for fifo in fifos:
        os.mkfifo(fifo)
    write_epoch(places, WRITES, *map(str, fifos))
    command = [sys.executable, "-c", PARENT, str(places.folder), str(tmp_path)]
    parent = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    write_spawned(places, int(parent.stdout), 100.0)
    assert is_starting(places, 100.0), "its parent is gone, and it is there"
    for fifo in fifos:
        fifo.read_bytes()
    assert places.output.read_text() == "begins yes True\ngoes on\n"


def test_a_process_that_has_ended_starts_nothing(tmp_path: Path):
    places = make_places(tmp_path)
    write_epoch(places, "import time; time.sleep(600)")
    pid = start_detached(places, tmp_path)
    write_spawned(places, pid, 100.0)
    assert [is_starting(places, at) for at in (100.0, 100.0 + START_WITHIN_S + 1)] == [True, False]
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # until it has ended, and without burying it
    assert not is_starting(places, 100.0)
    os.waitpid(pid, 0)
    assert not is_starting(places, 100.0)


def test_of_another_host_only_time_can_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    places = make_places(tmp_path)
    write_spawned(places, os.getpid(), 100.0)
    monkeypatch.setattr("airflow_dagsched.switch.log.spawned.socket.gethostname", lambda: "elsewhere")
    assert [is_starting(places, 100.0 + passed) for passed in (0, UNSEEN_S, UNSEEN_S + 1)] == [True, True, False]
    write_ended(places, Ended(1, "author", 101.0))
    assert not is_starting(places, 102.0), "it has said how it ended"


def test_what_a_driver_prints_is_its_user_s_alone(tmp_path: Path):
    places = make_places(tmp_path)
    write_epoch(places, "print('a password')")
    os.waitpid(start_detached(places, tmp_path), 0)
    assert places.output.read_text() == "a password\n"
    assert [each.stat().st_mode & 0o777 for each in (places.output.parent, places.output)] == [0o700, 0o600]


def test_what_others_may_have_written_is_not_run(tmp_path: Path):
    places = make_places(tmp_path)
    write_epoch(places, "raise SystemExit('it ran')")
    places.private.chmod(0o777)
    with pytest.raises(LaunchRefused, match="others than this user may write"):
        start_detached(places, tmp_path)
    assert not places.output.exists()


def test_a_driver_that_starts_is_not_started_again(tmp_path: Path):
    flow = Flow(tmp_path)
    flow.start = lambda places, work_dir: flow.started.append(places.folder.name) or os.getpid()  # type: ignore[method-assign]
    flow.executor = flow.join()
    flow.ask(1)
    flow.now += 30
    flow.join().step()
    assert flow.started == ["00000001"]
    assert read_spawned(flow.locate(1)).pid == os.getpid()  # type: ignore[union-attr]


def test_of_two_tasks_that_start_a_driver_at_one_moment_one_does(tmp_path: Path):
    """Those of both graphs look every second: what is lost is seen by both before either has started it."""
    flow, other_begins = Flow(tmp_path, pid=os.getpid()), Event()
    flow.ask(1)
    flow.started.clear()
    places = flow.locate(1)
    places.spawned.unlink()

    def start_slowly(places: EpochPlaces, work_dir: Path) -> int:
        flow.started.append(places.folder.name)
        other_begins.wait(0.5)  # the other one is not to begin
        return os.getpid()

    def start(other: bool) -> None:
        starter = replace(flow.make_starter(flow.join()), start=start_slowly)
        starter.start_epoch(flow.story.epochs[1])
        if other:
            other_begins.set()

    with ThreadPoolExecutor() as tasks:
        list(tasks.map(start, (False, True)))
    assert flow.started == [places.folder.name]


def test_starts_are_counted_until_a_batch_comes():
    story = tell(make_epoch(1), make_started(1, at=10.0), make_batch(1, 0, at=20.0))
    for before, count in ((None, 1), (Starts(3, 15.0), 1), (Starts(3, 25.0), 4)):
        assert count_start(story.epochs[1], before, 30.0) == Starts(count, 30.0)


def test_what_was_stopped_is_started_anew_without_its_order(tmp_path: Path):
    flow = Flow(tmp_path)
    flow.ask(1)
    flow.kill(1)
    flow.add(make_stopped(1, x_cause="person", at=flow.now))
    place_order(flow.locate(1), "stop", "someone", flow.now, "enough")
    flow.make_starter(flow.executor).resume(flow.story.epochs[1])
    assert read_orders(flow.locate(1)) == {}
    assert read_starts(flow.locate(1)) == Starts(1, flow.now)
    assert flow.started == ["00000001", "00000001"]
    assert (flow.locate(1).private.parent / COMMAND).exists() is False
