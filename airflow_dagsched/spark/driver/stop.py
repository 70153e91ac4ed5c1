"""Ending the driver at once, and noticing that its launcher has ended."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from pyspark import SparkContext

STOP_S = 1.0
"""Seconds that Spark gets to stop by itself."""


class Launcher:
    """A process of this host, told apart from a later one with the same id by when it began."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began = _read_start_time(pid)

    def is_gone(self) -> bool:
        """Whether it ended, or is only left for its parent to collect."""
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return True
        # Somebody else's, so it is there.
        except PermissionError:
            return False
        began = _read_start_time(self._pid)
        return began == "ended" or (self._began is not None and began is not None and began != self._began)


def _read_start_time(pid: int) -> str | None:
    """Start time in clock ticks, "ended" for a zombie; None where the system does not say."""
    try:
        # The second field, the name in brackets, may have spaces and brackets in it: counted from behind it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # The state; and proc(5)'s 22nd field, the start, which a later process of this number has not.
    return "ended" if fields[0] in "ZX" else fields[19]


def stop_spark() -> None:
    """Stop the application of this process, if it has one."""
    sc = SparkContext._active_spark_context
    with suppress(Exception):
        if sc is not None:
            sc.stop()


def stop_now(code: int, leave: Callable[[], None] = stop_spark) -> NoReturn:
    """End the process with ``code``, after trying to ``leave`` Spark."""
    thread = threading.Thread(target=leave, daemon=True)
    thread.start()
    thread.join(STOP_S)
    # Not sys.exit: that waits for the threads of steps, and py4j's.
    os._exit(code)
