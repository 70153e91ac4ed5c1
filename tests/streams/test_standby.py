"""A second application that waits: real processes, started by who follows the flow, and killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.provider.streaming.start_driver import Starter, start_detached
from airflow_dagsched.switch.advising.advice import Deploy
from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.leases import is_held
from airflow_dagsched.switch.log.signs_files import place_order, read_sign
from airflow_dagsched.switch.log.standbys import find_standby
from airflow_dagsched.switch.places import STANDBY, EpochPlaces
from airflow_dagsched.switch.records import Started, Stopped
from tests.streams.kit import Feed, Flow, Graph, wait_until
from tests.streams.rows import NO_DIFFERENCE, Rows, compare, read_table, sum_windows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = Rows()
SMALLEST = {"spark.master": "local[1]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
GRAPH = Graph(settings=StreamSettings(10.0, 5.0, 0.2, standbys=1), conf=SMALLEST)
STEP_S = 1.0


class Follower:
    """Whoever follows the flow: it looks once a second, and starts what is to be started."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.started: list[tuple[str, int]] = []
        """Folder and process of each program."""
        self._executor = Executor(flow.places.folder, {Deploy: self._deploy})
        self._starter = Starter(flow.places, lambda: self._executor.log.story, time.time, self._start)
        self._due = 0.0

    def _deploy(self, command: object) -> bool:
        assert isinstance(command, Deploy)
        return self._starter.deploy(command)

    def _start(self, places: EpochPlaces, work_dir: Path) -> int:
        pid = start_detached(places, work_dir)
        self.started.append((places.folder.name, pid))
        return pid

    def wait(self, is_so: Callable[[], bool]) -> None:
        def is_over() -> bool:
            if time.monotonic() > self._due:
                self._executor.step()
                self._due = time.monotonic() + STEP_S
            return is_so()

        wait_until(is_over, self._tell)

    def _tell(self) -> str:
        outputs = sorted(self.flow.places.folder.glob("*/*/output/driver.log"))
        told = [f"{each}:\n{each.read_text(errors='replace')[-3000:]}" for each in outputs]
        return "\n".join([*map(str, self.flow.read()[-3:]), *told])

    def kill(self, folder: str) -> None:
        """As ``kill -9`` of all its processes."""
        for name, pid in self.started:
            if name == folder:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)

    def is_idle(self) -> bool:
        """Whether all programs have ended."""
        return not any(_runs(pid) for _, pid in self.started)


def _runs(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    follower = Follower(Flow(tmp_path))
    yield follower
    for name, _ in follower.started:
        follower.kill(name)


def find_application(flow: Flow, folder: str) -> str:
    """Of the standby in the folder; empty until it stands by."""
    newest = find_standby(flow.places)
    if newest is None or newest.folder.name != folder or not is_held(flow.places.name_leases(STANDBY), time.time()):
        return ""
    sign = read_sign(newest)
    return sign.application if sign is not None and sign.phase == "standby" else ""


def test_a_standby_goes_on_with_the_epoch_of_a_killed_driver(follower: Follower):
    flow = follower.flow
    places, feed = flow.ask(GRAPH), Feed(flow, ROWS)
    follower.wait(feed.until(lambda: find_application(flow, "00000001") != ""))
    waits = find_application(flow, "00000001")
    follower.wait(feed.until(lambda: len(flow.list_batches(1)) >= 3))
    before = len(flow.list_batches(1))
    follower.kill(places.folder.name)
    follower.wait(lambda: len([each for each in flow.read() if isinstance(each, Started)]) == 2)
    follower.wait(feed.until(lambda: len(flow.list_batches(1)) >= before + 3, readers=(1,)))
    first, second = (each for each in flow.read() if isinstance(each, Started))
    assert second.application == waits != first.application
    # The next one, and no driver of the epoch.
    follower.wait(feed.until(lambda: find_application(flow, "00000002") != ""))
    assert [name for name, _ in follower.started] == [places.folder.name, "00000001", "00000002"]
    assert place_order(places, "stop", "a test", time.time(), "enough")
    follower.wait(follower.is_idle)
    assert [each.x_cause for each in flow.read() if isinstance(each, Stopped)] == ["person"]
    expected = sum_windows(feed.given, ROWS.window_s, upto=flow.find_watermark(1))
    assert compare(expected, read_table(flow.table)) == NO_DIFFERENCE
    assert check_log(flow.places.log).violations == ()


def test_a_standby_that_is_killed_is_followed_by_another(follower: Follower):
    flow = follower.flow
    places, feed = flow.ask(GRAPH), Feed(flow, ROWS)
    follower.wait(feed.until(lambda: find_application(flow, "00000001") != ""))
    follower.kill("00000001")
    follower.wait(feed.until(lambda: find_application(flow, "00000002") != ""))
    assert len([each for each in flow.read() if isinstance(each, Started)]) == 1
    assert place_order(places, "stop", "a test", time.time(), "enough")
    follower.wait(follower.is_idle)
    assert check_log(flow.places.log).violations == ()
