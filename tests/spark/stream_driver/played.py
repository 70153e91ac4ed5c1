"""Epochs that are played, in an application without Spark: their folders, leases and records are real."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from airflow_dagsched.launch.protocol.events import Failure
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.stream_driver.application import StreamApplication
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.epoch_run import EpochRun
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch, accept_epoch
from airflow_dagsched.switch.advising.behind import NOT_BEHIND, Behind
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.signs import Ended, Sign
from airflow_dagsched.switch.story import Story
from tests.streams.kit import QUERY, SOURCE, Flow, Graph
from tests.switch.drawn import make_batch, make_started


@dataclass
class PlayedSpark:
    """Sessions that take settings, but for some."""

    refused: tuple[str, ...] = ()
    taken: dict[str, str] = field(default_factory=dict)
    cleanups: int = 0
    """How often connections that nobody uses were closed."""

    @property
    def _gateway(self) -> Any:
        return self

    @property
    def java_gateway_server(self) -> Any:
        return self

    def getCallbackClient(self) -> Any:  # noqa: N802 - py4j's
        return self

    def periodicCleanup(self) -> None:  # noqa: N802 - py4j's
        self.cleanups += 1

    @property
    def conf(self) -> Any:
        return self

    @property
    def read(self) -> Any:
        return self

    @property
    def sparkContext(self) -> Any:  # noqa: N802 - Spark's
        return self

    @property
    def applicationId(self) -> str:  # noqa: N802 - Spark's
        return "app"

    def option(self, *arguments: str) -> Any:
        return self

    def parquet(self, path: str) -> str:
        return path

    def newSession(self) -> Any:  # noqa: N802 - Spark's
        return self

    def set(self, name: str, value: str) -> None:
        if name in self.refused:
            raise ValueError(f"[CANNOT_MODIFY_CONFIG] {name} = {value}")
        self.taken[name] = value


@dataclass
class PlayedRun:
    """An epoch that runs until it is told to end; it ends at once."""

    epoch: AcceptedEpoch
    lease: EpochLease
    failure: Failure | None = None
    is_over: bool = False
    looks: int = 0
    finish: Callable[[Story], None] = lambda story: None
    look_once: Callable[[], None] = lambda: None
    is_stuck: bool = False
    is_kept: bool = True
    """Whether its queries are."""
    guilty: str = ""

    def start(self) -> None:
        pass

    def look(self, now: float) -> None:
        self.looks += 1
        self.look_once()

    def halt(self, now: float) -> None:
        self.is_over = True

    def let_go(self) -> None:
        self.is_kept = False

    def finish_moves(self, story: Story) -> None:
        self.finish(story)

    def make_sign(self, now: float, waits_for: str, behind: Behind = NOT_BEHIND) -> Sign:
        return Sign(self.epoch.number, "app", now, "running", waits_for=waits_for)

    def make_ended(self, now: float, code: int) -> Ended:
        return Ended(code, self.failure.kind if self.failure else None, now)


class Application:
    """One that runs epoch 1, played, and whose clock is moved by hand.

    :param spark: what real runs of later epochs get.
    """

    def __init__(self, folder: Path, spark: PlayedSpark | None = None, **graph: Any) -> None:
        self.flow = Flow(folder)
        self.spark = spark or PlayedSpark()
        self.now = time.time()
        self.runs: dict[int, PlayedRun] = {}
        self.real: tuple[int, ...] = ()
        """Epochs whose runs are not played."""
        self.places = self.flow.ask(Graph(**graph))
        self.log = FlowLog(self.flow.places.log, lambda: self.now)
        self.log.read()
        first = accept_epoch(self.flow.places, self.log.story.epochs[1].record, Masking())
        self.under_test = StreamApplication(self.spark, first, lambda: self.now, self._open)  # type: ignore[arg-type]
        self.under_test.begin(first, EpochLease(first))
        newest: Mapping[str, float] = {SOURCE: 25.0}
        self.add(make_started(1))
        self.add(make_batch(1, 0, query=QUERY, x_begin={SOURCE: None}, x_newest=newest, watermark=10.0))

    def _open(self, main: Any, epoch: AcceptedEpoch, lease: EpochLease) -> EpochRun:
        if epoch.number in self.real:
            return EpochRun(main, epoch, lease)
        self.runs[epoch.number] = PlayedRun(epoch, lease)
        return self.runs[epoch.number]  # type: ignore[return-value]

    def add(self, record: Record) -> None:
        """Add the record to the log."""
        assert self.log.append(lambda story, n, at: replace(record, n=n, at=at)) is not None

    def step(self, times: int = 1, seconds: float = 10.0) -> None:
        """Look so many times, with so much between."""
        for _ in range(times):
            self.now += seconds
            self.under_test.step()

    @property
    def story(self) -> Story:
        self.log.read()
        return self.log.story
