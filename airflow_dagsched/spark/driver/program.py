"""The driver program, from its manifest to its exit code.

Exit codes: 0 all steps of the group ended well, 1 one did not, 2 refused (the last event says why),
3 stopped because this driver must not go on (its launcher is gone, or another is the writer now).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.events import Failure, Finished, Started
from airflow_dagsched.launch.protocol.manifest import ENV_MANIFEST_SHA256, ENV_NONCE, Manifest, read_manifest
from airflow_dagsched.launch.protocol.wire import encode_plain, load_json
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.driver.engine import run_group
from airflow_dagsched.spark.driver.failures import describe_failure, read_text
from airflow_dagsched.spark.driver.fitness import check_python, check_version
from airflow_dagsched.spark.driver.launch_secrets import Refused, check_digest, take_private_content
from airflow_dagsched.spark.driver.stop import Launcher, stop_now, stop_spark
from airflow_dagsched.spark.files.driver_files import read_bytes
from airflow_dagsched.spark.files.event_files import open_event_file
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.session.capture_output import capture_output
from airflow_dagsched.spark.session.executors import make_counter
from airflow_dagsched.spark.session.opening import start_spark
from airflow_dagsched.spark.steps.payload import Payload, read_payload
from airflow_dagsched.spark.telling.emitter import Emitter, send_in_time
from airflow_dagsched.spark.telling.progress_watch import ProgressWatch
from airflow_dagsched.spark.telling.unblocked import Unblocked
from airflow_dagsched.version import __version__

OK, FAILED, REFUSED, STOPPED = 0, 1, 2, 3
TAKEN = (
    "{} is another driver program's already: each submit runs once, so set spark.yarn.maxAppAttempts=1, or whatever "
    "else starts a driver program again"
)
LAST_WORD_S = 2.0
"""Seconds that whoever reads our output has to take the rest of it; the event file has it, too."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a run has its application from."""

    open: Callable[[Iterable[str]], SparkSession]
    """Gives its session; takes the secrets that Spark shows nowhere."""
    leave: Callable[[], None]
    """Lets go of it at once."""
    run: int | None = None
    """Which run of a warm application this is; None: the application is its own."""


OWN = Source(start_spark, stop_spark)


@dataclass
class Driver:
    """One run of the program."""

    emitter: Emitter
    masking: Masking
    source: Source = OWN
    began: float = field(default_factory=time.monotonic)
    """Seconds of the monotonic clock."""
    progress: ProgressWatch | None = None
    """Once there are steps at work."""

    def run(self, text: str) -> int:
        """Run the group of the manifest ``text``; the exit code. The last event is sent."""
        failure, code = None, FAILED
        try:
            accept_manifest(text)
            # After the look at the versions: another Python's pickles may do anything.
            code = OK if self.run_manifest() else FAILED
        except Refused as refused:
            failure, code = Failure("refused", str(refused)), REFUSED
        except BaseException as error:  # noqa: BLE001 - whatever it is, the launch task has to hear of it
            failure = describe_failure(error, read_text(error), "(the driver program)")
        self.finish(code == OK, failure)
        return code

    def run_manifest(self) -> bool:
        """Run the group; whether it ended well."""
        manifest, payload = self.unpack()
        with capture_output(self.emitter.add_line):
            spark = self.source.open(self.masking.known)
            check_version(spark.version)
            sc = spark.sparkContext
            self.emitter.emit(Started(str(sc.applicationId), sc.uiWebUrl, self.source.run))
            mask, watch = partial(self.masking.value, keys=True), partial(self.watch_group, spark, manifest)
            return run_group(spark, manifest, payload, self.emitter.emit, mask=mask, watch=watch)

    @contextmanager
    def watch_group(self, spark: SparkSession, manifest: Manifest, outputs: Outputs) -> Iterator[None]:
        """Say that this driver lives, and whether its steps get anywhere; end it where it must not go on."""
        executors = make_counter(spark)
        self.progress = ProgressWatch(
            spark, manifest.targets, manifest.stall_s, self.emitter.emit, self.emitter.count_printed, executors
        )
        beat = send_in_time(self.emitter, self.make_guard(manifest, outputs), executors)
        with beat, self.progress.watch_steps():
            yield

    def unpack(self) -> tuple[Manifest, Payload]:
        """The manifest as it is, and the steps' calls; the secrets that came with them are masked from now on."""
        text, secrets, payload = read_payload(take_private_content(os.environ))
        self.masking.add(secrets)
        manifest = read_manifest(text, __version__)
        self.masking.learn([payload.list_arguments(), encode_plain(manifest.context), encode_plain(manifest.steps)])
        return manifest, payload

    def make_guard(self, manifest: Manifest, outputs: Outputs) -> Callable[[], None]:
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
            # Said while it can be: Spark may not answer any more.
            if self.progress is not None:
                self.emitter.emit(*self.progress.list_stalled(time.monotonic()))
            self.finish(False, failure)
        stop_now(STOPPED, self.source.leave)

    def finish(self, ok: bool, failure: Failure | None) -> None:
        """Send the last event."""
        self.emitter.emit(Finished(ok, round(time.monotonic() - self.began, 3), failure))


def accept_manifest(text: str) -> Manifest:
    """The manifest in ``text``. Raises ``Refused`` where it is not the launch task's own, or where this program or this
    Python is not what it was made for.
    """
    check_digest(text.encode(), os.environ.get(ENV_MANIFEST_SHA256), "the manifest")
    try:
        manifest = read_manifest(text, __version__)
    except ValueError as error:
        raise Refused(str(error)) from error
    check_python(manifest.python)
    return manifest


def find_events_path(text: str) -> str | None:
    """Where to say that a manifest is refused, if that much of it can be read and it is the launch task's own."""
    with suppress(ValueError, Refused):
        check_digest(text.encode(), os.environ.get(ENV_MANIFEST_SHA256), "the manifest")
        raw = load_json(text)
        path = raw.get("events") if isinstance(raw, Mapping) else None
        return path if isinstance(path, str) else None
    return None


def main(arguments: list[str], source: Source = OWN) -> int:
    """Run the group of the manifest at ``arguments[0]`` in the application of ``source``; the exit code."""
    text = read_bytes(arguments[0]).decode()
    masking = Masking()
    # Found before the manifest is accepted: a refusal, too, has to reach the launch task.
    path, nonce, out = find_events_path(text), os.environ.get(ENV_NONCE, ""), Unblocked(sys.stdout)
    try:
        file = open_event_file(path) if path else None
    except FileExistsError:
        refused = Failure("refused", TAKEN.format(path))
        # Not into the file, which is the other program's.
        Driver(Emitter(None, nonce, sys.stdout, masking), masking).finish(False, refused)
        return REFUSED
    driver = Driver(Emitter(file, nonce, out, masking), masking, source)
    # How spark-submit, YARN and Kubernetes all end a driver.
    signal.signal(signal.SIGTERM, lambda *_: driver.stop(Failure("lost_driver", "stopped: the driver was told to end")))
    try:
        return driver.run(text)
    finally:
        out.drain(LAST_WORD_S)
