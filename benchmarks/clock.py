"""Seconds on the wall and of processor, of this process and of all that it has started, whoever has it now.

::

    here ── spark-submit ── Java ── Python
      ├──── Worker ── executor ── Python worker        counted while it lives, counted when it has ended
      └──── host of a warm application                 orphans come here: see :func:`adopt_orphans`
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from airflow_dagsched.launch.warm.about import FOLDER
from airflow_dagsched.provider.warm.applications import Application, ask_status, list_applications
from benchmarks.home import CACHE
from benchmarks.processor_time import count_cpu_s

PR_SET_CHILD_SUBREAPER = 36
EXECUTOR = "CoarseGrainedExecutorBackend"
PATIENCE_S = 60.0


class Taken(NamedTuple):
    """What a run, or one interval of it, took."""

    seconds: float
    cpu_s: float
    quiet_after_s: float = 0.0
    """Until the executors that it left were gone, and its warm application was idle: not in ``seconds``, as nobody
    waits for that but who comes next; what it takes of the processor is in ``cpu_s``.
    """


class Clock:
    """From its making on."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), count_cpu_s()

    def read(self) -> Taken:
        """What it took by now."""
        ended = time.perf_counter()
        wait_until_quiet()
        return Taken(ended - self._wall, count_cpu_s() - self._cpu, time.perf_counter() - ended)


def adopt_orphans() -> None:
    """Have the kernel make this process the parent of all below it whose parent ends, so that none is lost."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def wait_until_quiet() -> None:
    """Until no executor is left, and no warm application is busy; raises ``TimeoutError`` where that lasts."""
    until = time.monotonic() + PATIENCE_S
    while _is_executor_there() or any(_is_busy(each) for each in list_warm()):
        if time.monotonic() > until:
            raise TimeoutError("executors or warm applications are still at work")
        time.sleep(0.05)


def list_warm() -> Iterator[Application]:
    """The warm applications of this benchmark's cache folder."""
    return list_applications(Path(os.environ[CACHE], FOLDER))


def _is_busy(application: Application) -> bool:
    status = ask_status(application)
    return status is not None and status.state != "idle"


def _is_executor_there() -> bool:
    return any(
        EXECUTOR in argument for each in psutil.Process().children(recursive=True) for argument in _command(each)
    )


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:  # it has ended just now
        return []
