"""Standard output that never makes the driver wait.

::

    steps, heartbeats ──write──> (waiting lines) ──thread──> pipe ──> spark-submit ──> launch task

While Airflow's API server is away, the launch task may read nothing for minutes and the pipe fills up. What does not
fit among the waiting lines is left out; the launch task then reads it in the event file.
"""

from __future__ import annotations

import io
import threading
from collections import deque
from contextlib import suppress
from typing import TextIO

WAITING_CHARS = 4 * 1024 * 1024


class Unblocked(io.TextIOBase):
    """A text stream over ``out``, for whole lines."""

    def __init__(self, out: TextIO, most_chars: int = WAITING_CHARS) -> None:
        self._out = out
        self._most = most_chars
        self._changed = threading.Condition()
        self._lines: deque[str] = deque()
        self._held = 0
        threading.Thread(target=self._pass_on, name="dagsched-stdout", daemon=True).start()

    def write(self, line: str) -> int:
        with self._changed:
            # Left out else: it is in the event file.
            if self._held + len(line) <= self._most:
                self._held += len(line)
                self._lines.append(line)
                self._changed.notify_all()
        return len(line)

    def drain(self, within_s: float) -> bool:
        """Wait until all is written, but not for longer; whether it is."""
        with self._changed:
            # ``_held`` counts a line until it is written: the last one is waited for, too.
            return self._changed.wait_for(lambda: not self._held, within_s)

    def _pass_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._lines))
                line = self._lines.popleft()
            with suppress(OSError, ValueError):  # who read it is gone; the event file is still there
                # Without the condition held: this may block for minutes, and steps go on printing.
                self._out.write(line)
                self._out.flush()
            with self._changed:
                self._held -= len(line)
                self._changed.notify_all()
