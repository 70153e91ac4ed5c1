"""The driver program, from its manifest to its exit code.

Exit codes: 0 all steps of the group ended well, 1 one did not, 2 refused (the last event says why),
3 stopped because this driver must not go on (its launcher is gone, or another is the writer now).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pyspark.sql import SparkSession

from airflow_dagsched import __version__
from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.events import Failure, Finished, Started
from airflow_dagsched.launch.manifest import ENV_NONCE, Manifest, read_manifest
from airflow_dagsched.launch.masking import Masking
from airflow_dagsched.launch.wire import encode
from airflow_dagsched.spark.commits import CommitLog
from airflow_dagsched.spark.emitter import Emitter, sending
from airflow_dagsched.spark.engine import application, run_group
from airflow_dagsched.spark.executors import counting
from airflow_dagsched.spark.failures import failure_of
from airflow_dagsched.spark.files import event_file, read_bytes, remove
from airflow_dagsched.spark.outputs import Outputs
from airflow_dagsched.spark.payload import Payload, read_payload
from airflow_dagsched.spark.prints import capturing
from airflow_dagsched.spark.stop import Launcher, stop_now
from airflow_dagsched.spark.stores import open_store

OK, FAILED, REFUSED, STOPPED = 0, 1, 2, 3


@dataclass
class Refused(DagschedError):
    """This driver cannot run this manifest; the message says what to change."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass
class Driver:
    """One run of the program."""

    emitter: Emitter
    masking: Masking
    began: float = field(default_factory=time.monotonic)
    """Seconds of the monotonic clock."""

    def run(self, text: str) -> int:
        """Run the group of the manifest ``text``; the exit code. The last event is sent."""
        failure, code = None, FAILED
        try:
            code = OK if self.drive(accept(text)) else FAILED
        except Refused as refused:
            failure, code = Failure("refused", str(refused)), REFUSED
        except BaseException as error:  # noqa: BLE001 - whatever it is, the launch task has to hear of it
            failure = failure_of(error, "(the driver program)")
        self.finish(code == OK, failure)
        return code

    def drive(self, shown: Manifest) -> bool:
        """Run the group; whether it ended well."""
        manifest, payload = self.unpack(shown)
        with capturing(self.emitter.log):
            spark = SparkSession.builder.getOrCreate()
            sc = spark.sparkContext
            self.emitter.emit(Started(str(sc.applicationId), sc.uiWebUrl))
            store = open_store(spark, manifest.work_dir)
            log = CommitLog(store, manifest.work_dir)
            outputs = Outputs(spark, store, log, manifest)
            with closing(outputs), sending(self.emitter, self.watch(manifest, outputs), counting(spark)):
                return run_group(application(spark, manifest, payload, self.emitter.emit, log, outputs))

    def unpack(self, shown: Manifest) -> tuple[Manifest, Payload]:
        """The manifest as it is, and the steps' calls. Their file is removed: there may be secrets in it, which
        are masked from now on.
        """
        data = read_bytes(shown.payload)
        remove(shown.payload)
        text, payload = read_payload(data)
        manifest = read_manifest(text, __version__)
        self.masking.learn([payload.arguments(), encode(manifest.context), encode(manifest.steps)])
        return manifest, payload

    def watch(self, manifest: Manifest, outputs: Outputs) -> Callable[[], None]:
        """What is looked at once a second: whether this driver must not go on."""
        launcher = Launcher(manifest.launcher_pid) if manifest.launcher_pid is not None else None

        def look() -> None:
            if outputs.keeper.lost is not None:
                self.stop(Failure("refused", f"stopped: {outputs.keeper.lost}"))
            if launcher is not None and launcher.is_gone():
                self.stop(Failure("lost_driver", "stopped: the process that launched this driver is gone"))

        return look

    def stop(self, failure: Failure) -> NoReturn:
        """End this process now, whatever its threads are doing."""
        with suppress(Exception):
            self.finish(False, failure)
        stop_now(STOPPED)

    def finish(self, ok: bool, failure: Failure | None) -> None:
        """Send the last event."""
        self.emitter.emit(Finished(ok, round(time.monotonic() - self.began, 3), failure))


def accept(text: str) -> Manifest:
    """The manifest in ``text``. Raises ``Refused`` where this program or this Python is not what it was made for."""
    try:
        manifest = read_manifest(text, __version__)
    except (ValueError, TypeError, KeyError) as error:
        raise Refused(str(error)) from error
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    if manifest.python != python:
        raise Refused(
            f"the steps were pickled by Python {manifest.python}, the driver program runs on {python}: "
            "set spark.pyspark.python and PYSPARK_DRIVER_PYTHON to the version Airflow runs on"
        )
    return manifest


def events_path(text: str) -> str | None:
    """Where to say that a manifest is refused, if that much of it can be read."""
    with suppress(ValueError, AttributeError):
        path: Any = json.loads(text).get("events")
        return path if isinstance(path, str) else None
    return None


def main(arguments: list[str]) -> int:
    """Run the group of the manifest at ``arguments[0]``; the exit code."""
    text = read_bytes(arguments[0]).decode()
    masking = Masking()
    path = events_path(text)
    emitter = Emitter(event_file(path) if path else None, os.environ.get(ENV_NONCE, ""), sys.stdout, masking)
    driver = Driver(emitter, masking)
    signal.signal(signal.SIGTERM, lambda *_: driver.stop(Failure("lost_driver", "stopped: the driver was told to end")))
    return driver.run(text)
