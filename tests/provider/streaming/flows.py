"""Flows for tests: a folder with a log, epochs to start, and drivers that are a lease and no more."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from airflow_dagsched.launch.streams.private_folder import StartCommand, write_private_folder
from airflow_dagsched.provider.streaming.standbys.make_folder import FindRoom, find_any_room
from airflow_dagsched.provider.streaming.start_driver import Starter
from airflow_dagsched.switch.advising.advice import Deploy, Wanted
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.places import INBOX_SERVICE, STANDBY, EpochPlaces, name_flow
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.story import Story
from tests.switch.drawn import make_batch, make_started, number

LEASE_S = 20.0


@dataclass(eq=False)
class Flow:
    """A flow of a DAG, and what a test makes happen to it."""

    work_dir: Path
    now: float = 1_000_000.0
    started: list[str] = field(default_factory=list)
    """Folders of the epochs whose driver was started, each time."""
    dies: bool = False
    """Whether drivers end as soon as they were started."""
    pid: int = 2**22 + 1
    """Of a driver's process; by default it is not there any more."""
    standbys: int = 0
    find_room: FindRoom = find_any_room
    """Where a standby goes."""

    def __post_init__(self) -> None:
        self.places = name_flow(self.work_dir, "dag", "flow")
        self.executor = self.join()

    def clock(self) -> float:
        return self.now

    def join(self) -> Executor:
        """Another process that can start drivers."""
        executor = Executor(self.places.folder, {}, clock=self.clock)
        starter = self.make_starter(executor)
        executor._abilities = {Deploy: starter.deploy}  # the starter reads the executor's own log
        return executor

    def make_starter(self, executor: Executor) -> Starter:
        return Starter(self.places, lambda: executor.log.story, self.clock, self.start, self.find_room)

    @property
    def story(self) -> Story:
        self.executor.log.read()
        return self.executor.log.story

    def locate(self, epoch: int) -> EpochPlaces:
        return self.places.name_epoch(self.story.epochs[epoch].record.x_folder)

    def start(self, places: EpochPlaces, work_dir: Path) -> int:
        """In place of ``start_detached``."""
        assert work_dir == self.work_dir
        self.started.append(places.folder.name)
        if places == self.places.inbox_service:
            self.set_lease(INBOX_SERVICE, self.now + LEASE_S)
        elif places.folder.parent == self.places.standbys:
            self.set_lease(STANDBY, self.now + LEASE_S)
        elif not self.dies and self.pid != os.getpid():
            epoch = next(n for n, each in self.story.epochs.items() if each.record.x_folder == places.folder.name)
            self.begin(epoch)
        return self.pid

    def begin(self, epoch: int) -> None:
        """Its driver takes the lease, and starts the queries."""
        self.set_lease(epoch, self.now + LEASE_S)
        self.add(make_started(epoch, at=self.now))

    def run_batch(self, epoch: int, **fields: object) -> None:
        self.now += 1
        query = self.story.epochs[epoch].queries.get("out")
        self.add(make_batch(epoch, 0 if query is None else query.last.batch + 1, **{"at": self.now, **fields}))

    def kill(self, epoch: int) -> None:
        """The driver is gone, and says nothing."""
        self.set_lease(epoch, 0)

    def set_lease(self, epoch: int, expires: float) -> None:
        folder = self.places.name_leases(epoch)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "0000000001.json").write_text(json.dumps({"expires": expires}))

    def add(self, record: Record) -> None:
        self.executor.log.append(lambda story, n, at: number((record,), n)[0])

    def ask(self, epoch: int) -> Story:
        """Ask for a new epoch, of code and run of this number, and look until nothing comes of it."""
        wanted = Wanted(f"code {epoch}", f"run {epoch}", f"{epoch:08x}", {"out": ("in",)}, window=10.0)
        return self.settle(replace(wanted, standbys=self.standbys))

    def settle(self, wanted: Wanted | None = None) -> Story:
        for _ in range(20):
            before = self.executor.log.story.last, len(self.started)
            self.executor.step(wanted)
            if before == (self.executor.log.story.last, len(self.started)):
                return self.executor.log.story
        raise AssertionError("it never ends")


def write_epoch(places: EpochPlaces, program: str, *arguments: str) -> None:
    """An epoch whose driver is a small Python program."""
    command = StartCommand((sys.executable, "-c", program, *arguments), str(places.folder.parent), {"STREAM": "yes"})
    places.folder.mkdir(parents=True, mode=0o755)
    write_private_folder(places.private, b"", "", command)
