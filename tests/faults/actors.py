"""Who may be killed in a play: drivers, what fills inboxes, a worker of the cluster, tasks that follow an epoch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow_dagsched.switch.log.signs_files import read_sign
from airflow_dagsched.switch.log.spawned import is_there, read_spawned
from airflow_dagsched.switch.places import EpochPlaces
from demo import processes
from tests.faults.follow import AT_WORK
from tests.faults.play import Play
from tests.streams.kit import ROOT, Driver, wait_until
from tests.testbed.spark_cluster import StandaloneCluster


class DriverActor:
    """The application of some epochs: a driver is started for the first of them that is to run.

    :param epochs: all of them run in one application, if there are several.
    """

    def __init__(self, play: Play, *epochs: int) -> None:
        self._play = play
        self._epochs = epochs
        self._driver: Driver | None = None
        self._began = 0.0
        """When it was started last, in seconds since 1970."""

    def go_on(self) -> None:
        """See ``Actor``."""
        places = None if self._is_alive() else self._find_due()
        if places is None:
            return
        if self._driver is not None:
            # Once started again Spark ends no window before new rows come, and the feed waits for that.
            self._play.feed.add()
        self._began = time.time()
        self._driver = self._play.undo.enter_context(self._play.flow.run(places))

    def _find_due(self) -> EpochPlaces | None:
        """What it is started on; None: nothing is to run."""
        due = [epoch for epoch in self._epochs if self._is_due(epoch)]
        return self._play.locate(due[0]) if due else None

    def _is_due(self, epoch: int) -> bool:
        story = self._play.story
        found = story.epochs.get(epoch)
        if found is None or found.stopped is not None or found.drained:
            return False
        return not found.comes_after or story.owner == epoch

    def _is_alive(self) -> bool:
        return self._driver is not None and self._driver.is_alive()

    def kill(self) -> bool:
        """See ``Actor``; one that was started again just now is killed once it is at work."""
        if self._driver is None:
            return False
        self.go_on()
        wait_until(lambda: not self._is_alive() or self._is_at_work(), lambda: f"{self}")
        was_alive = self._is_alive()
        self._driver.kill()
        return was_alive

    def _is_at_work(self) -> bool:
        signs = map(read_sign, self._list_places())
        return any(sign is not None and sign.at >= self._began for sign in signs)

    def _list_places(self) -> list[EpochPlaces]:
        return [self._play.locate(epoch) for epoch in self._epochs if epoch in self._play.story.epochs]

    def stop(self) -> None:
        """Ask it to end after its batch, and wait for it."""
        assert self._driver is not None
        assert self._driver.stop() == 0

    def __repr__(self) -> str:
        return self._driver.read_output()[-2500:] if self._driver is not None else "not started"


class ServiceActor(DriverActor):
    """What fills the inboxes."""

    def _find_due(self) -> EpochPlaces | None:
        return self._play.flow.places.inbox_service

    def _list_places(self) -> list[EpochPlaces]:
        return [self._play.flow.places.inbox_service]


class WorkerActor:
    """The worker that has the executors; once it was killed they begin on another, and it comes back."""

    def __init__(self, cluster: StandaloneCluster) -> None:
        self._cluster = cluster
        self._killed: list[str] = []

    def go_on(self) -> None:
        """See ``Actor``."""
        while self._killed:
            self._cluster.start(self._killed.pop())

    def kill(self) -> bool:
        """See ``Actor``."""
        wait_until(lambda: bool(self._list_busy()), lambda: f"executors: {self._cluster.workers()}")
        for host in self._list_busy():
            # Also its executors, which are no one's children then.
            for process in processes.family(self._cluster.programs[host].pid):
                process.kill()
            self._cluster.kill(host)
            self._killed.append(host)
        return True

    def _list_busy(self) -> list[str]:
        return [host for host, page in self._cluster.workers().items() if page["executors"]]

    def __repr__(self) -> str:
        return f"{self._cluster.state()}"


class FollowerActor:
    """The task that follows an epoch: first its worker, which starts the driver, then its trigger."""

    def __init__(self, play: Play, epoch: int) -> None:
        self._play = play
        self._epoch = epoch
        self._process: subprocess.Popen[bytes] | None = None
        self._said = 0
        """Length of what those before it have printed."""
        self._outcome = play.flow.work_dir.parent / f"outcome-{epoch}.json"
        self._output = play.flow.work_dir.parent / f"follower-{epoch}.log"
        play.undo.callback(self._end)

    def go_on(self) -> None:
        """See ``Actor``."""
        if self._is_alive() or self.has_ended() or self._epoch not in self._play.story.epochs:
            return
        self._said = len(self._read_output())
        command = (sys.executable, "-m", "tests.faults.follow", self._play.flow.places.folder, self._epoch)
        self._process = processes.start([*map(str, command), str(self._outcome)], os.environ, self._output, Path(ROOT))

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def has_ended(self) -> bool:
        """Whether the task is over."""
        return self._outcome.exists()

    def read_outcome(self) -> Any:
        """What the task came to."""
        return json.loads(self._outcome.read_text())

    def kill(self) -> bool:
        """See ``Actor``; drivers that it started go on."""
        self.go_on()
        wait_until(lambda: not self._is_alive() or AT_WORK in self._read_output()[self._said :], lambda: f"{self}")
        return self._kill()

    def _kill(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            return False
        self._process.kill()
        self._process.wait()
        return True

    def _read_output(self) -> str:
        return self._output.read_text() if self._output.exists() else ""

    def _end(self) -> None:
        self._kill()
        if self._epoch in self._play.story.epochs:
            kill_driver(self._play.locate(self._epoch))

    def __repr__(self) -> str:
        told = [self._read_output()[-2500:] or "not started"]
        if self._epoch in self._play.story.epochs:
            output = self._play.locate(self._epoch).output
            told.append(output.read_text(errors="replace")[-2500:] if output.exists() else "no driver")
        return "\n".join(told)


class FollowedDriver:
    """The driver of an epoch that a task has started, and starts again."""

    def __init__(self, play: Play, epoch: int) -> None:
        self._play = play
        self._epoch = epoch

    def go_on(self) -> None:
        """See ``Actor``: whoever follows it sees to that."""

    def kill(self) -> bool:
        """See ``Actor``; the owner's is killed once it runs."""
        if self._epoch not in self._play.story.epochs:
            return False
        if self._play.story.owner == self._epoch:
            self._play.wait(lambda: is_running(self._play.locate(self._epoch)))
        if not kill_driver(self._play.locate(self._epoch)):
            return False
        # As for a driver that is started again in a play.
        self._play.feed.add()
        return True

    def __repr__(self) -> str:
        return f"{read_sign(self._play.locate(self._epoch))}" if self._epoch in self._play.story.epochs else "none"


def is_running(places: EpochPlaces) -> bool:
    """Whether the driver that was started last is there, and has its lease."""
    spawned, sign = read_spawned(places), read_sign(places)
    return spawned is not None and sign is not None and is_there(spawned) and sign.at >= spawned.at


def kill_driver(places: EpochPlaces) -> bool:
    """Kill all processes of the driver that was started last; whether it ran."""
    spawned = read_spawned(places)
    if spawned is None or not is_there(spawned):
        return False
    with suppress(ProcessLookupError):
        os.killpg(spawned.pid, signal.SIGKILL)
    wait_until(lambda: not is_there(spawned), lambda: f"{spawned} is there still")
    return True
