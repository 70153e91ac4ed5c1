"""The driver program of a stream, from the folder of an epoch to its exit code.

``spark-submit .. main.py <flow>/epochs/<folder>``. All it needs is in the epoch's private folder
(``launch/streams/private_folder`` says what), in the flow's log, which names the folder, and in Spark's settings; no
variable of the environment is asked for. It outlives whoever started it.

It leaves, in the epoch's folder: ``status.json``, replaced every 2 s; ``exit.json``, as it ends; ``queries/<step>/
checkpoint``. Where ``output/driver.log`` is what it prints to, opened to append, it keeps that short.

SIGTERM lets the batches that run be the last, a second one ends it at once. Exit codes, of the epoch that ended last:
0 it was replaced or stopped, 1 a step or Spark failed, 2 refused before it began, 3 it must not go on (another driver
has the lease, a batch of it may not be recorded, one does not end, or Java is gone).
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from pyspark.sql import SparkSession

from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.driver.fitness import check_version
from airflow_dagsched.spark.driver.launch_secrets import Refused
from airflow_dagsched.spark.driver.stop import stop_now
from airflow_dagsched.spark.session.capture_output import capture_output
from airflow_dagsched.spark.session.opening import start_spark
from airflow_dagsched.spark.session.sessions import share_builder
from airflow_dagsched.spark.stream_driver.application import StreamApplication
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.executors import await_executors
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch, accept_epoch, find_epoch
from airflow_dagsched.spark.stream_driver.java_signals import forward_java_signals
from airflow_dagsched.spark.stream_driver.mishaps import STOPPED, Stuck, describe_end
from airflow_dagsched.spark.stream_driver.output_file import MaskedFormatter
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import write_ended
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Seconds between two looks at the log."""
ENDING_S = 0.2
"""The same once it is to end: batches are short, and the next one is not let in."""
SAME_S = 2.0
"""Seconds within which two signals are one."""


class Program:
    """One run of the program.

    :param folder: of the epoch.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.masking = Masking()
        """Of all secrets that the program meets."""
        self._woken = threading.Event()
        self._ends_since: float | None = None
        """Seconds of the monotonic clock; None: it is to run."""

    def end(self, number: int = signal.SIGTERM, frame: FrameType | None = None) -> None:
        """SIGTERM has come."""
        now = time.monotonic()
        # One that is sent to all processes comes by Java, too.
        if self._ends_since is not None and now - self._ends_since > SAME_S:
            stop_now(STOPPED)
        self._ends_since = self._ends_since or now
        self._woken.set()

    def run(self) -> int:
        """Run the epoch, and those that take over from it in this application; the exit code."""
        lease = None
        try:
            epoch = self.accept()
            lease = EpochLease(epoch)
            return self._run_epoch(epoch, lease)
        except Stuck as stuck:
            log.error("the program ends, and what it ran is run again: %s", stuck)
            stop_now(STOPPED)
        except Exception as error:  # noqa: BLE001 - whatever it is, the launch task has to hear of it
            return self._leave(error)
        finally:
            if lease is not None:
                lease.give_back()

    def accept(self) -> AcceptedEpoch:
        """What the program is to run. Raises ``Refused``."""
        flow = FlowPlaces(self.folder.parent.parent)
        flow_log = FlowLog(flow.log)
        flow_log.read()
        return accept_epoch(flow, find_epoch(flow_log.story, self.folder), self.masking)

    def open(self, main: SparkSession, epoch: AcceptedEpoch) -> StreamApplication:
        """What runs in the application, begun with the epoch."""
        return StreamApplication(main, epoch)

    def _run_epoch(self, epoch: AcceptedEpoch, lease: EpochLease) -> int:
        # Not the one of the moment, which is what captures.
        out = sys.stdout
        with capture_output(lambda step, line: print(f"{step}: {epoch.masking.text(line)}", file=out, flush=True)):
            main = open_application(epoch)
            forward_java_signals(main, self.end)
            application = self.open(main, epoch)
            try:
                if await_executors(main, partial(self._may_wait, application, lease), self._pause):
                    application.begin(epoch, lease)
                self._look_after(application)
            finally:
                application.close()
            return application.code

    def _may_wait(self, application: StreamApplication, lease: EpochLease, waits_for: str) -> bool:
        return self._ends_since is None and application.may_wait(lease, waits_for)

    def _pause(self) -> None:
        self._woken.wait(LOOK_S)

    def _look_after(self, application: StreamApplication) -> None:
        """Until nothing runs in it any more."""
        while not application.is_over:
            is_ending = self._ends_since is not None
            application.step(is_ending)
            if is_ending:
                # It has woken us once: from now on it is looked often enough.
                self._woken.clear()
            self._woken.wait(ENDING_S if is_ending else LOOK_S)
        # Once more: what follows from the end of the last epoch is put down by whoever sees it first.
        application.advance()

    def _leave(self, error: Exception) -> int:
        """Say why the program ends without its epoch's having ended."""
        ended = describe_end(error, self.masking, time.time())
        log.error("%s", ended.message)
        with suppress(OSError):
            write_ended(EpochPlaces(self.folder), ended)
        return ended.code


def open_application(epoch: AcceptedEpoch) -> SparkSession:
    """Start Spark. Raises ``Refused`` for a version that can't run streams."""
    # Queries of two epochs share the cores as equals; by the order of their jobs one would wait for the other.
    main = start_spark(epoch.masking.known, {"spark.scheduler.mode": "FAIR"})
    check_version(main.version)
    check_streaming(main.version)
    share_builder()
    return main


def check_streaming(version: str) -> None:
    """Raises ``Refused`` where Spark knows no names of sources."""
    line = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if line < (4, 2):
        raise Refused(f"Spark {version} is too old for streams: take 4.2.1 or newer")


def run_program(program: Program) -> int:
    """Run it as the process's own; the exit code."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(MaskedFormatter(program.masking))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    signal.signal(signal.SIGTERM, program.end)
    return program.run()
