"""Sends events on their way: to the event file, always, and as marker lines to stdout.

What is sent is safe to print and to store, whatever a step printed, raised or returned.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from airflow_dagsched.launch.protocol.events import Event, Finished, Heartbeat, StepLog, encode_batch, encode_marker
from airflow_dagsched.launch.protocol.printable import clean_text, clean_texts, clean_value
from airflow_dagsched.launch.protocol.wire import decode_dataclass, encode_plain
from airflow_dagsched.launch.secrecy.masked_events import mask_event
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.files.event_files import EventFile

LOG_S = 0.3
"""Printed lines are sent at most so much later, together."""
HEARTBEAT_S = 1.0
BATCH_CHARS = 64 * 1024
"""Printed lines that are more than this are sent at once."""


class Out(Protocol):
    """Where whole lines are written for whoever follows."""

    def write(self, line: str, /) -> int: ...

    def flush(self) -> None: ...


class Emitter:
    """Batches in the order they are given; never two at once, never a secret, nothing after ``Finished``."""

    def __init__(self, file: EventFile | None, nonce: str, stdout: Out, masking: Masking) -> None:
        self._file = file
        self._nonce = nonce
        self._stdout = stdout
        self._masking = masking
        # Taken again inside: ``add_line`` sends a batch that is full.
        self._guard = threading.RLock()
        self._logs: dict[str, list[str]] = {}
        self._printed: Counter[str] = Counter()
        self._held = 0
        """Characters of the lines in ``_logs``."""
        self._sent = 0
        self._finished = False

    def emit(self, *events: Event) -> None:
        """One batch, after the lines printed until now."""
        with self._guard:
            # Lines first: what a step printed comes before its end.
            logs = [StepLog(step, tuple(lines)) for step, lines in self._logs.items()]
            self._logs, self._held = {}, 0
            self._send_batch([*logs, *events])

    def send_heartbeat(self, executors: int | None = None) -> None:
        """On stdout alone: the file would only grow."""
        with self._guard:
            self._print_batch((Heartbeat(executors),))

    def add_line(self, step: str, line: str) -> None:
        """``step`` printed ``line``: sent with the next batch. Where nobody follows, it is shown at once."""
        with self._guard:
            self._logs.setdefault(step, []).append(line)
            self._held += len(line)
            self._printed[step] += 1
            if not self._nonce:
                self._print_line(f"[{step}] {clean_text(self._masking.text(line))}")
            if self._held >= BATCH_CHARS:
                self.emit()

    def count_printed(self, step: str) -> int:
        """Lines of ``step`` until now."""
        return self._printed[step]

    def flush(self) -> None:
        """Send the lines printed until now, if any."""
        with self._guard:
            if self._logs:
                self.emit()

    def _send_batch(self, events: Iterable[Event]) -> None:
        shown = (mask_event(event, self._masking) for event in events)
        # Through JSON and back: what is shown is what a reader of the file will have.
        batch = tuple(decode_dataclass(type(event), make_safe(encode_plain(event))) for event in shown)
        if not batch or self._finished:
            return
        if self._file is not None:
            # The file first: what was seen on stdout can be found there, whatever happens next.
            self._file.append(encode_batch(batch))
        self._sent += 1
        self._print_batch(batch)
        self._finished = isinstance(batch[-1], Finished)

    def _print_batch(self, batch: Iterable[Event]) -> None:
        if self._nonce and not self._finished:
            self._print_line(encode_marker(self._nonce, self._sent, batch))

    def _print_line(self, line: str) -> None:
        with suppress(OSError, ValueError):  # who read it is gone; the event file is still there
            self._stdout.write(line + "\n")
            self._stdout.flush()


def make_safe(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event (JSON) with texts for people, and a returned value for programs, that anybody can store."""
    return {name: clean_value(item) if name == "value" else clean_texts(item) for name, item in event.items()}


@contextmanager
def send_in_time(
    emitter: Emitter, on_beat: Callable[[], None] = lambda: None, executors: Callable[[], int | None] = lambda: None
) -> Iterator[None]:
    """Send printed lines and heartbeats in time, while the block runs; ``on_beat`` is called at each heartbeat, which
    says how many ``executors`` there are.
    """
    ended = threading.Event()

    def run() -> None:
        due = time.monotonic()
        # The wait is the pause and the look at the end in one.
        while not ended.wait(LOG_S):
            emitter.flush()
            if time.monotonic() >= due:
                # It is looked at every LOG_S: due so much earlier, a beat is never later than HEARTBEAT_S.
                due = time.monotonic() + HEARTBEAT_S - LOG_S
                emitter.send_heartbeat(executors())
                on_beat()

    thread = threading.Thread(target=run, name="dagsched-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
