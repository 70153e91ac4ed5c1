"""What a step prints or logs becomes the step's own lines, also while several run side by side.

Standard output and error are replaced by streams that know whose turn the writing thread has. Handlers of
loggers configured before wrote to the old streams: they are pointed at the new ones.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from airflow_dagsched.spark.session.current import CURRENT

NOISY = {"py4j": logging.WARNING, "DataFrameQueryContextLogger": logging.CRITICAL + 1}
"""Loggers of the libraries below us that would repeat, at length, what the events say."""


LINE_CHARS = 8_000
"""A longer line is several."""


class StepStream(io.TextIOBase):
    """A text stream: whole lines of a step go to ``on_line``, all else to ``other``."""

    def __init__(self, other: TextIO, on_line: Callable[[str, str], None]) -> None:
        self._other = other
        self._on_line = on_line
        # A line may come in pieces, and steps print side by side: each thread has its own beginning.
        self._begun = threading.local()

    def write(self, text: str) -> int:
        step = CURRENT.step
        if step is None:
            return self._other.write(text)
        *lines, rest = (getattr(self._begun, "line", "") + text).split("\n")
        for line in lines:
            for piece in _cut_line(line.removesuffix("\r")):
                self._on_line(step, piece)
        # What never ends its line must not be held for ever.
        *whole, self._begun.line = _cut_line(rest)
        for piece in whole:
            self._on_line(step, piece)
        return len(text)

    def flush(self) -> None:
        if CURRENT.step is None:
            self._other.flush()

    def end_line(self) -> None:
        """The step's turn ends: a line it only began is a line too."""
        if getattr(self._begun, "line", ""):
            self.write("\n")

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        # For subprocess and faulthandler: what these write is the driver's own, nobody knows whose turn it was.
        return self._other.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._other.encoding


def _cut_line(line: str) -> list[str]:
    return [line[at : at + LINE_CHARS] for at in range(0, len(line), LINE_CHARS)] or [""]


@contextmanager
def capture_output(on_line: Callable[[str, str], None]) -> Iterator[None]:
    """``on_line(step, line)`` gets what steps print and log while the block runs."""
    before = sys.stdout, sys.stderr
    out, err = StepStream(before[0], on_line), StepStream(before[1], on_line)
    swaps = ((before[0], out), (before[1], err))
    for old, new in swaps:
        _point_handlers(old, new)
    sys.stdout, sys.stderr = out, err
    try:
        with _add_root_handler(out, err):
            yield
    finally:
        sys.stdout, sys.stderr = before
        for old, new in swaps:
            _point_handlers(new, old)


def end_lines() -> None:
    """Send the line this thread's step began and did not end."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, StepStream):
            stream.end_line()


def _point_handlers(old: object, new: object) -> None:
    # The one list of all handlers there is; weak references, some of them dead.
    for reference in list(logging._handlerList):  # type: ignore[attr-defined]
        handler = reference()
        if isinstance(getattr(type(handler), "stream", None), property):
            continue  # logging's handler of last resort looks up the stream of the moment by itself
        if isinstance(handler, logging.StreamHandler) and handler.stream is old:
            handler.setStream(new)


@contextmanager
def _add_root_handler(*streams: StepStream) -> Iterator[None]:
    """A handler for what steps log, where the root logger has none that writes to ``streams``."""
    root = logging.getLogger()
    level = root.level
    for name, lowest in NOISY.items():
        logging.getLogger(name).setLevel(lowest)
    handler = logging.StreamHandler(streams[-1])
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    if not any(isinstance(each, logging.StreamHandler) and each.stream in streams for each in root.handlers):
        root.addHandler(handler)
        # Python's default, WARNING, would keep from people what steps log for them.
        root.setLevel(min(level, logging.INFO))
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
