"""A stream's application in this process, as the driver program runs it, to be measured from inside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.stream_driver.application import StreamApplication
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.epoch_run import EpochRun
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch, accept_epoch, find_epoch
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.records import Record
from tests.streams.kit import Flow

LOOK_S = 0.5
PATIENCE_S = 600.0


def open_spark(folder: Path) -> SparkSession:
    """A Spark of two cores, as a driver program would have it."""
    builder = SparkSession.builder.master("local[2]").config("spark.scheduler.mode", "FAIR")
    builder = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
    )
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    main = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    main.sparkContext.setLogLevel("FATAL")
    return main


class Application:
    """The application of one flow.

    :param main: where its epochs get sessions of their own.
    """

    def __init__(self, main: SparkSession, flow: Flow, first: EpochPlaces) -> None:
        self.runs: dict[int, EpochRun] = {}
        """Epoch -> its queries."""
        self.flow = flow
        epoch = self._accept(first)
        self._stream = StreamApplication(main, epoch, open_run=self._open_run)
        self._stream.begin(epoch, EpochLease(epoch))
        self._goes_on = True
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._look_after, name="application")
        self._thread.start()

    def _accept(self, places: EpochPlaces) -> AcceptedEpoch:
        log = FlowLog(self.flow.places.log)
        log.read()
        return accept_epoch(self.flow.places, find_epoch(log.story, places.folder), Masking())

    def _open_run(self, main: SparkSession, epoch: AcceptedEpoch, lease: EpochLease) -> EpochRun:
        self.runs[epoch.number] = EpochRun(main, epoch, lease)
        return self.runs[epoch.number]

    def _look_after(self) -> None:
        try:
            while self._goes_on and not self._stream.is_over:
                self._stream.step()
                time.sleep(LOOK_S)
            while not self._stream.is_over:
                self._stream.step(is_ending=True)
                time.sleep(LOOK_S)
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            self._error = error
        finally:
            self._stream.close()

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Until it is so. Raises ``RuntimeError`` where the application ends before."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"{what} does not come; the log ends with {self.flow.read()[-3:]}") from self._error
            time.sleep(0.02)

    def is_idle(self, epoch: int) -> bool:
        """Whether no batch of the epoch runs."""
        return not any(_is_busy(query) for query in self.runs[epoch].session.streams.active)

    def stop(self) -> None:
        """End all of it after its batches."""
        self._goes_on = False
        self._thread.join()


@contextmanager
def running(main: SparkSession, flow: Flow, first: EpochPlaces) -> Iterator[Application]:
    """The application of an epoch, until the block ends."""
    application = Application(main, flow, first)
    try:
        yield application
    finally:
        application.stop()


def has(flow: Flow, kind: type[Record], epoch: int) -> bool:
    """Whether the log has such a record of the epoch."""
    return any(isinstance(each, kind) and getattr(each, "epoch", None) == epoch for each in flow.read())


def _is_busy(query: Any) -> bool:
    return bool(query.status["isTriggerActive"] or query.status["isDataAvailable"])


def measure_cpu_s() -> float:
    """Processor seconds of this process and all below it, until now: Java's and Python's."""
    mine = psutil.Process()
    found = (each.cpu_times() for each in (mine, *mine.children(recursive=True)))
    return float(sum(times.user + times.system for times in found))
