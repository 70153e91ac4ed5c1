"""Tasks that follow epochs, without Airflow, and the drivers that they have started, as those who may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow_dagsched.switch.log.signs_files import read_sign
from airflow_dagsched.switch.log.spawned import is_there, read_spawned
from airflow_dagsched.switch.places import EpochPlaces
from demo import processes
from tests.faults.follow import TRIGGER, WORKER
from tests.faults.play import Actor, Play
from tests.streams.kit import ROOT, wait_until


class FollowerActor:
    """The task that follows an epoch: now its worker, which starts the driver, now its trigger.

    It is killed as ``trigger`` or ``worker`` of its name.
    """

    def __init__(self, play: Play, epoch: int) -> None:
        self.epoch = epoch
        self.name = ""
        self._play = play
        self._process: subprocess.Popen[bytes] | None = None
        self._said = 0
        """Length of what those before it have printed."""
        folder = play.flow.work_dir.parent
        self._outcome, self._output = folder / f"outcome-{epoch}.json", folder / f"follower-{epoch}.log"
        play.undo.callback(self._end)

    def go_on(self) -> None:
        """See ``Actor``."""
        if self._is_alive() or self.has_ended() or self._play.find(self.epoch) is None:
            return
        self._said = len(self._read_output())
        command = (sys.executable, "-m", "tests.faults.follow", self._play.flow.places.folder, self.epoch)
        self._process = processes.start([*map(str, command), str(self._outcome)], os.environ, self._output, Path(ROOT))

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def has_ended(self) -> bool:
        """Whether the task is over."""
        return self._outcome.exists()

    def read_outcome(self) -> Any:
        """What the task came to."""
        return json.loads(self._outcome.read_text())

    def settle(self) -> None:
        """See ``Actor``."""
        self.go_on()
        wait_until(lambda: not self._is_alive() or self._is_settled(), lambda: f"{self}")

    def kill(self) -> str:
        """See ``Actor``; drivers that it started go on."""
        phase = self._find_phase()
        return f"{phase} of {self.name}" if self._kill() else ""

    def _is_settled(self) -> bool:
        """Whether it is where it stays for a while: in its worker until its queries run."""
        phase, found = self._find_phase(), self._play.find(self.epoch)
        return phase == TRIGGER or (phase == WORKER and found is not None and found.started is None)

    def _find_phase(self) -> str:
        """Where it was last; empty: it has not begun."""
        lines = self._read_output()[self._said :].splitlines()
        return next((line for line in reversed(lines) if line in (WORKER, TRIGGER)), "")

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
        if self._play.find(self.epoch) is not None:
            kill_driver(self._play.locate(self.epoch))

    def __repr__(self) -> str:
        told = [self._read_output()[-2500:] or "not started"]
        if self._play.find(self.epoch) is not None:
            output = self._play.locate(self.epoch).output
            told.append(output.read_text(errors="replace")[-2500:] if output.exists() else "no driver")
        return "\n".join(told)


class FollowedDriver:
    """The driver of an epoch that a task has started, and starts again."""

    def __init__(self, play: Play, name: str, epoch: int) -> None:
        self._play = play
        self._name = name
        self._epoch = epoch

    def go_on(self) -> None:
        """See ``Actor``: whoever follows it sees to that."""

    def settle(self) -> None:
        """See ``Actor``: once one that starts works, and the owner's was started by somebody, if anybody may."""
        if self._play.find(self._epoch) is None:
            return
        places, is_owner = self._play.locate(self._epoch), self._play.story.owner == self._epoch

        def is_settled() -> bool:
            is_awaited = is_owner and not self._play.is_paused()
            return is_at_work(places) if is_awaited else not is_starting(places)

        self._play.wait(is_settled)

    def kill(self) -> str:
        """See ``Actor``."""
        if self._play.find(self._epoch) is None or not kill_driver(self._play.locate(self._epoch)):
            return ""
        # As for a driver that is started again in a play.
        self._play.feed.add()
        return self._name

    def __repr__(self) -> str:
        return f"{read_sign(self._play.locate(self._epoch))}" if self._play.find(self._epoch) is not None else "none"


def make_cast(play: Play, tasks: Mapping[str, FollowerActor]) -> dict[str, Actor]:
    """These tasks under their names, and the driver of each."""
    for name, task in tasks.items():
        task.name = name
    drivers = {f"{name} driver": FollowedDriver(play, f"{name} driver", task.epoch) for name, task in tasks.items()}
    return {**tasks, **drivers}


def is_starting(places: EpochPlaces) -> bool:
    """Whether the driver that was started last is there, and has not said so."""
    spawned, sign = read_spawned(places), read_sign(places)
    return spawned is not None and is_there(spawned) and (sign is None or sign.at < spawned.at)


def is_at_work(places: EpochPlaces) -> bool:
    """Whether the driver that was started last is there, and has said so."""
    spawned = read_spawned(places)
    return spawned is not None and is_there(spawned) and not is_starting(places)


def kill_driver(places: EpochPlaces) -> bool:
    """Kill all processes of the driver that was started last; whether it ran."""
    spawned = read_spawned(places)
    if spawned is None or not is_there(spawned):
        return False
    with suppress(ProcessLookupError):
        os.killpg(spawned.pid, signal.SIGKILL)
    wait_until(lambda: not is_there(spawned), lambda: f"{spawned} is there still")
    return True
