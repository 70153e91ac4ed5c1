"""Whoever follows a stream, without Airflow: what launch task and triggerer do for it, at the pace of each."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from airflow_dagsched.provider.streaming.following import POLL_S, Followed, Look
from airflow_dagsched.provider.streaming.standbys.make_folder import FindRoom
from airflow_dagsched.provider.streaming.start_driver import Starter, start_detached
from airflow_dagsched.provider.streaming.verdicts import Lost
from airflow_dagsched.switch.advising.advice import Deploy
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.leases import is_held
from airflow_dagsched.switch.log.signs_files import read_sign
from airflow_dagsched.switch.log.standbys import find_standby
from airflow_dagsched.switch.places import STANDBY, EpochPlaces
from airflow_dagsched.switch.records import Fence, Started
from airflow_dagsched.switch.signs import Sign
from tests.streams.kit import Flow, Graph

WAIT_S = 0.2
STEP_S = 1.0
"""Between two looks of a launch task, as long as it has a worker."""


class TooLate(Exception):
    """It does not come in the time that there is."""


class Follower:
    """Asks for graphs, and starts what is to be started.

    :param find_room: where a standby goes.
    :param until: nothing is waited for after that, by the monotonic clock.
    """

    def __init__(self, flow: Flow, find_room: FindRoom, until: float) -> None:
        self.flow = flow
        self.epoch = 0
        """The newest one."""
        self._until = until
        self._drivers: list[int] = []
        self._executor = Executor(flow.places.folder, {Deploy: self._deploy})
        self._starter = Starter(flow.places, lambda: self._executor.log.story, time.time, self._start, find_room)
        settings = Graph().settings
        limits = settings.deploy_within_s, settings.most_stuck_s, settings.catch_up_within_s
        self._look = Look.open(Followed(str(flow.places.folder), *limits))
        self._due = 0.0

    def _deploy(self, command: object) -> bool:
        assert isinstance(command, Deploy)
        return self._starter.deploy(command)

    def _start(self, places: EpochPlaces, work_dir: Path) -> int:
        self._drivers.append(start_detached(places, work_dir))
        return self._drivers[-1]

    def ask(self, graph: Graph) -> None:
        """Ask for a graph, which comes as its launch task sees to it: go on with :meth:`go_on`."""
        self.flow.ask(graph)
        self.epoch += 1

    def go_on(self) -> None:
        """Look if it is time: once a second until the newest graph needs no worker any more, then as a triggerer."""
        if time.monotonic() < self._due:
            return
        if not self._has_worker() and not isinstance(self._look.look([self.epoch]).get(self.epoch), Lost):
            self._due = time.monotonic() + POLL_S
            return
        self._executor.step()
        self._due = time.monotonic() + STEP_S

    def _has_worker(self) -> bool:
        """Whether neither its queries run, nor will as soon as the old graph is gone."""
        records = self.flow.read()
        is_handed = any(isinstance(each, Fence) and each.to == self.epoch for each in records)
        return not is_handed and not any(isinstance(each, Started) and each.epoch == self.epoch for each in records)

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Until it is so. Raises :class:`TooLate`."""
        while not is_so():
            if time.monotonic() > self._until:
                raise TooLate(self._tell())
            self.go_on()
            time.sleep(WAIT_S)

    def _tell(self) -> str:
        outputs = sorted(self.flow.places.folder.glob("*/*/output/driver.log"), key=os.path.getmtime)
        ends = [each.read_text(errors="replace")[-3000:] for each in outputs[-1:]]
        return "\n".join([*map(str, self.flow.read()[-3:]), *ends])

    # --- what runs

    def find_driver(self) -> Started:
        """The one that works for the newest graph."""
        return next(each for each in reversed(self.flow.read()) if isinstance(each, Started))

    def find_sign(self) -> Sign | None:
        """Of the driver of the newest graph."""
        epoch = self._executor.log.story.epochs.get(self.epoch)
        return read_sign(self.flow.places.name_epoch(epoch.record.x_folder)) if epoch is not None else None

    def find_hosts(self) -> tuple[str, ...]:
        """Of the executors of the newest graph; none: it has none yet."""
        sign = self.find_sign()
        return sign.hosts if sign is not None else ()

    def has_standby(self) -> bool:
        """Whether an application waits."""
        newest = find_standby(self.flow.places)
        if newest is None or not is_held(self.flow.places.name_leases(STANDBY), time.time()):
            return False
        sign = read_sign(newest)
        return sign is not None and sign.phase == "standby" and sign.application != self.find_driver().application

    def kill(self) -> None:
        """As ``kill -9`` of all processes of the driver."""
        os.killpg(os.getpgid(self.find_driver().x_pid), signal.SIGKILL)

    def kill_all(self) -> None:
        """All drivers, and standbys, that were started."""
        for each in self._drivers:
            with suppress(ProcessLookupError):
                os.killpg(each, signal.SIGKILL)


@contextmanager
def following(flow: Flow, find_room: FindRoom, until: float) -> Iterator[Follower]:
    """Until the block ends; then nothing of the flow runs any more."""
    follower = Follower(flow, find_room, until)
    try:
        yield follower
    finally:
        follower.kill_all()
