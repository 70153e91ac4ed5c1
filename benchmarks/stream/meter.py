"""Processor seconds of all processes that this one has started, and those have, as they come and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import psutil

LOOK_S = 0.5
"""A process that lives no longer may be missed."""


class Meter:
    """Looks at all of them, again and again."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, float], float] = {}
        """Process, by number and birth -> its seconds when it was last seen: those of one that has ended count on."""
        self._looks: list[tuple[float, float]] = []
        """Seconds since 1970 -> processor seconds of all until then."""
        self._end = threading.Event()

    @contextmanager
    def running(self) -> Iterator[Meter]:
        """Until the block ends."""
        self._look()
        thread = threading.Thread(target=self._go_on, name="meter")
        thread.start()
        try:
            yield self
        finally:
            self._end.set()
            thread.join()

    def measure(self, begin: float, end: float) -> float:
        """Processor seconds between two times that are over, in seconds since 1970."""
        times, seconds = zip(*self._looks, strict=True)
        first, last = np.interp([begin, end], times, seconds)
        return float(last - first)

    def _go_on(self) -> None:
        while not self._end.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        for each in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                times = each.cpu_times()
                self._last[each.pid, each.create_time()] = times.user + times.system
        self._looks.append((time.time(), sum(self._last.values())))
