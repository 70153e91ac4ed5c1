"""A stream's application in this process, as the driver program runs it, to be measured from inside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from pyspark.sql import SparkSession

from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.streams.application_settings import FOR_WEEKS
from airflow_dagsched.spark.stream_driver.application import StreamApplication
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.epoch_run import EpochRun
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch, accept_epoch, find_epoch
from airflow_dagsched.spark.stream_driver.inbox.inbox_program import InboxApplication, InboxProgram
from airflow_dagsched.spark.stream_driver.inbox.inbox_run import InboxRun
from airflow_dagsched.spark.stream_driver.program import ENDING_S, LOOK_S
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import INBOX_SERVICE, EpochPlaces
from airflow_dagsched.switch.records import Record
from tests.streams.kit import Flow

WAIT_S = 0.05
"""Between two looks of who waits, at a plain query as at a graph."""
PATIENCE_S = 600.0


def open_spark(folder: Path) -> SparkSession:
    """A Spark of two cores, as a driver program would have it."""
    builder = SparkSession.builder.master("local[2]").config(map=dict(FOR_WEEKS))
    builder = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
    )
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    main = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    main.sparkContext.setLogLevel("FATAL")
    return main


class Looks:
    """Looks after what runs in an application, in a thread, as often as a driver program does."""

    def __init__(self, stream: StreamApplication) -> None:
        self._stream = stream
        self._goes_on = True
        self._is_awake = threading.Event()
        self._is_awake.set()
        self.error: BaseException | None = None
        """What has ended it."""
        self._thread = threading.Thread(target=self._look_after, name="application")
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive()

    def rest(self) -> None:
        """Do nothing until it is woken: what is measured meanwhile is somebody else's."""
        self._is_awake.clear()

    def wake(self) -> None:
        """Go on."""
        self._is_awake.set()

    def stop(self) -> None:
        """End all of it after its batches."""
        self._goes_on = False
        self.wake()
        self._thread.join()

    def _look_after(self) -> None:
        try:
            while not self._stream.is_over:
                self._is_awake.wait()
                self._stream.step(is_ending=not self._goes_on)
                time.sleep(LOOK_S if self._goes_on else ENDING_S)
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            self.error = error
        finally:
            self._stream.close()


class Application:
    """The application of one flow; with the service that fills its inboxes, where graphs read them.

    :param main: where its epochs get sessions of their own.
    """

    def __init__(self, main: SparkSession, flow: Flow, first: EpochPlaces) -> None:
        self.runs: WeakValueDictionary[int, EpochRun] = WeakValueDictionary()
        """Epoch -> its queries, as long as the application keeps them."""
        self.flow = flow
        self._looks: list[Looks] = []
        epoch = self._accept(first)
        if epoch.record.channel == "inbox":
            # First: a graph waits for it to say what columns rows have.
            service = InboxProgram(flow.places.inbox_service.folder).accept()
            self._begin(service, InboxApplication(main, service, open_run=self._open_service))
        self._begin(epoch, StreamApplication(main, epoch, open_run=self._open_run))

    def _begin(self, epoch: AcceptedEpoch, stream: StreamApplication) -> None:
        stream.begin(epoch, EpochLease(epoch))
        self._looks.append(Looks(stream))

    def _accept(self, places: EpochPlaces) -> AcceptedEpoch:
        log = FlowLog(self.flow.places.log)
        log.read()
        return accept_epoch(self.flow.places, find_epoch(log.story, places.folder), Masking())

    def _open_run(self, main: SparkSession, epoch: AcceptedEpoch, lease: EpochLease) -> EpochRun:
        run = self.runs[epoch.number] = EpochRun(main, epoch, lease)
        return run

    def _open_service(self, main: SparkSession, epoch: AcceptedEpoch, lease: EpochLease) -> EpochRun:
        run = self.runs[INBOX_SERVICE] = InboxRun(main, epoch, lease)
        return run

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Until it is so. Raises ``RuntimeError`` where the application ends before."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if not all(each.is_alive for each in self._looks) or time.monotonic() > deadline:
                error = next((each.error for each in self._looks if each.error), None)
                raise RuntimeError(f"{what} does not come; the log ends with {self.flow.read()[-3:]}") from error
            time.sleep(WAIT_S)

    def is_idle(self, epoch: int) -> bool:
        """Whether no batch of the epoch runs, nor of what fills its inbox."""
        read = (self.runs[each] for each in (epoch, INBOX_SERVICE) if each in self.runs)
        return not any(_is_busy(query) for run in read for query in run.session.streams.active)

    def rest(self) -> None:
        """Look at nothing until it is woken; its queries look for rows."""
        for each in self._looks:
            each.rest()

    def wake(self) -> None:
        """Go on."""
        for each in self._looks:
            each.wake()

    def stop(self) -> None:
        """End all of it after its batches."""
        for each in self._looks:
            each.stop()


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
