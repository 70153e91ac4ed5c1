"""Sends events on their way: to the event file, always, and as marker lines to stdout."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from airflow_dagsched.launch.events import Event, Finished, Heartbeat, StepLog, marker_line, to_line
from airflow_dagsched.launch.masking import Masking
from airflow_dagsched.launch.wire import decode, encode
from airflow_dagsched.spark.store import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_S = 0.3
"""Printed lines are sent at most so much later, together."""
HEARTBEAT_S = 1.0


class EventFile(Protocol):
    """Where lines are appended; each is there for readers when ``append`` returns."""

    def append(self, line: str) -> None: ...


class LocalEventFile:
    """An event file of this machine."""

    def __init__(self, path: str) -> None:
        self._path = Path(local_path(path))

    def append(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


class HadoopEventFile:
    """An event file of another file system that can append, such as HDFS."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm = spark._jvm
        assert jvm is not None
        self._path = jvm.org.apache.hadoop.fs.Path(path)
        self._fs = self._path.getFileSystem(spark._jsc.hadoopConfiguration())

    def append(self, line: str) -> None:
        file = self._fs.append(self._path) if self._fs.exists(self._path) else self._fs.create(self._path)
        try:
            file.write(bytearray((line + "\n").encode()))
        finally:
            file.close()


class Emitter:
    """Batches in the order they are given; never two at once, never a secret, nothing after ``Finished``."""

    def __init__(self, file: EventFile | None, nonce: str, stdout: TextIO, masking: Masking) -> None:
        self._file = file
        self._nonce = nonce
        self._stdout = stdout
        self._masking = masking
        self._guard = threading.RLock()
        self._logs: dict[str, list[str]] = {}
        self._sent = 0
        self._finished = False

    def emit(self, *events: Event) -> None:
        """One batch, after the lines printed until now."""
        with self._guard:
            logs = [StepLog(step, tuple(lines)) for step, lines in self._logs.items()]
            self._logs = {}
            self._send([*logs, *events])

    def heartbeat(self, executors: int | None = None) -> None:
        """On stdout alone: the file would only grow."""
        with self._guard:
            self._say((Heartbeat(executors),))

    def log(self, step: str, line: str) -> None:
        """``step`` printed ``line``: shown at once, sent with the next batch."""
        with self._guard:
            self._logs.setdefault(step, []).append(line)
            self._print(f"[{step}] {self._masking.text(line)}")

    def flush(self) -> None:
        """Send the lines printed until now, if any."""
        with self._guard:
            if self._logs:
                self.emit()

    def _send(self, events: Iterable[Event]) -> None:
        batch = tuple(decode(type(event), self._masking.value(encode(event))) for event in events)
        if not batch or self._finished:
            return
        if self._file is not None:
            self._file.append(to_line(batch))
        self._sent += 1
        self._say(batch)
        self._finished = isinstance(batch[-1], Finished)

    def _say(self, batch: Iterable[Event]) -> None:
        if self._nonce and not self._finished:
            self._print(marker_line(self._nonce, self._sent, batch))

    def _print(self, line: str) -> None:
        with suppress(OSError, ValueError):  # who read it is gone; the event file is still there
            self._stdout.write(line + "\n")
            self._stdout.flush()


@contextmanager
def sending(
    emitter: Emitter, on_beat: Callable[[], None] = lambda: None, executors: Callable[[], int | None] = lambda: None
) -> Iterator[None]:
    """Send printed lines and heartbeats in time, while the block runs; ``on_beat`` is called at each heartbeat, which
    says how many ``executors`` there are.
    """
    ended = threading.Event()

    def run() -> None:
        due = time.monotonic()
        while not ended.wait(LOG_S):
            emitter.flush()
            if time.monotonic() >= due:
                due = time.monotonic() + HEARTBEAT_S - LOG_S
                emitter.heartbeat(executors())
                on_beat()

    thread = threading.Thread(target=run, name="dagsched-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
