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
from tests.faults.follow import TRIGGER, WORKER, name_outcome
from tests.faults.play import Play
from tests.streams.kit import ROOT, wait_until


class TasksActor:
    """The process in which each epoch's task is: now as a worker, which starts the driver, now as a trigger.

    :param roles: epoch -> what it is: its task is killed as ``trigger of`` that, or ``worker of`` it.
    """

    def __init__(self, play: Play, roles: Mapping[int, str]) -> None:
        self.roles = roles
        self._play = play
        self._process: subprocess.Popen[bytes] | None = None
        self._said = 0
        """Length of what those before it have printed."""
        folder = play.flow.work_dir.parent
        self._outcomes, self._output = folder / "outcomes", folder / "tasks.log"
        self._outcomes.mkdir()
        play.undo.callback(self._end)

    def go_on(self) -> None:
        """See ``Actor``."""
        if self._process is not None and self._process.poll() is None:
            return
        self._said = len(self._read_output())
        command = (sys.executable, "-m", "tests.faults.follow", self._play.flow.places.folder, self._outcomes)
        self._process = processes.start([*map(str, command)], os.environ, self._output, Path(ROOT))

    def has_ended(self, epoch: int) -> bool:
        """Whether the task is over."""
        return name_outcome(self._outcomes, epoch).exists()

    def read_outcome(self, epoch: int) -> Any:
        """What the task came to."""
        return json.loads(name_outcome(self._outcomes, epoch).read_text())

    def settle(self) -> None:
        """See ``Actor``: until each task is where it stays for a while, or has ended."""
        self.go_on()
        wait_until(lambda: all(map(self._is_settled, self.roles)), lambda: f"{self}")

    def _is_settled(self, epoch: int) -> bool:
        found, phase = self._play.find(epoch), self._find_phase(epoch)
        if found is None or self.has_ended(epoch):
            return True
        # In its worker until its queries run; of one that is given up it is about to end.
        return found.aborted is None and (phase == TRIGGER or (phase == WORKER and found.started is None))

    def kill(self) -> list[str]:
        """See ``Actor``; drivers that it started go on."""
        there = [epoch for epoch in self.roles if self._play.find(epoch) is not None and not self.has_ended(epoch)]
        killed = [f"{self._find_phase(epoch)} of {self.roles[epoch]}" for epoch in there]
        self._kill()
        return killed

    def _find_phase(self, epoch: int) -> str:
        """Where the task was last; empty: it has not begun."""
        phases = {f"{phase} {epoch}": phase for phase in (WORKER, TRIGGER)}
        lines = self._read_output()[self._said :].splitlines()
        return next((phases[line] for line in reversed(lines) if line in phases), "")

    def _read_output(self) -> str:
        return self._output.read_text() if self._output.exists() else ""

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _end(self) -> None:
        self._kill()
        for epoch in self._play.story.epochs:
            kill_driver(self._play.locate(epoch))

    def __repr__(self) -> str:
        outputs = [self._play.locate(epoch).output for epoch in self._play.story.epochs]
        told = [each.read_text(errors="replace")[-2500:] for each in outputs if each.exists()]
        return "\n".join([self._read_output()[-4000:], *told])


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

    def kill(self) -> list[str]:
        """See ``Actor``."""
        if self._play.find(self._epoch) is None or not kill_driver(self._play.locate(self._epoch)):
            return []
        # As for a driver that is started again in a play.
        self._play.feed.add()
        return [self._name]

    def __repr__(self) -> str:
        return f"{read_sign(self._play.locate(self._epoch))}" if self._play.find(self._epoch) is not None else "none"


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
