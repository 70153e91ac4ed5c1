"""Processes that the host forks: how they begin, and how they are looked after."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

PR_SET_PDEATHSIG = 1
LEAVE_WITHIN_S = 4.0
"""Seconds a run has to say its last word."""


@dataclass(frozen=True, slots=True)
class Child:
    """A process of the host's, with a process group of its own."""

    pid: int
    watch: int
    """A file that can be read once it has ended."""

    def send_signal(self, signum: int) -> None:
        """To all of its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signum)

    def collect(self) -> int:
        """Wait for its end; its exit code, 128 and the signal's number where it was killed."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.watch)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def end(self, within_s: float = LEAVE_WITHIN_S) -> int:
        """End it, politely first; its exit code. Whatever it has started goes with it."""
        self.send_signal(signal.SIGTERM)
        until = time.monotonic() + within_s
        while time.monotonic() < until and not self.has_ended():
            time.sleep(0.02)
        self.send_signal(signal.SIGKILL)
        return self.collect()

    def has_ended(self) -> bool:
        """Whether it waits to be collected."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def see_end(pid: int, within_s: float) -> None:
    """Leave a process behind that kills process ``pid`` unless it ends in time: nobody else would."""
    try:
        watched = os.pidfd_open(pid)
    except OSError:  # it is gone
        return
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, watched)
        os.closerange(watched + 1, os.sysconf("SC_OPEN_MAX"))
        if not select.select([watched], [], [], within_s)[0]:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(watched, signal.SIGKILL)
        os._exit(0)


def fork_child(begin: Callable[[], None]) -> Child | None:
    """Fork; the child, or None in the child itself, once ``begin`` was called there."""
    host = os.getpid()
    pid = os.fork()
    if pid:
        with suppress(OSError):  # the child may have done it, or be gone
            os.setpgid(pid, pid)
        return Child(pid, os.pidfd_open(pid))
    os.setpgid(0, 0)
    # Without the host nobody collects a child: it must not outlive it by a moment.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != host:
        os._exit(1)
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_DFL)
    begin()
    return None
