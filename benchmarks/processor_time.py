"""Seconds of processor that a benchmark and all it has started take."""

from __future__ import annotations

from contextlib import suppress

import psutil


def count_cpu_s() -> float:
    """Processor seconds so far of this process, of all living ones below it, and of those that have ended."""
    found = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            found += sum(process.cpu_times()[:4])
    return found
