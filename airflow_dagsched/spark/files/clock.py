"""Time, as everything that waits for it sees it: a simulation puts its own in place of the machine's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """What leases, locks and commits know of time."""

    def now(self) -> float:
        """Seconds since 1970; those of two machines may differ a little."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so long."""
        ...

    def every(self, seconds: float, do: Callable[[], None], name: str) -> Callable[[], None]:
        """Call ``do`` so often, beside the caller, until what is returned is called; that waits for its last call.

        :param name: of what does it, for people who look at threads.
        """
        ...


class MachineClock:
    """This machine's time, and its threads."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def every(self, seconds: float, do: Callable[[], None], name: str) -> Callable[[], None]:
        ended = threading.Event()

        def work() -> None:
            # The wait is the pause and the look at the end in one: who ends this does not wait out a pause.
            while not ended.wait(seconds):
                do()

        # Daemon: a driver that dies of an exception does not stay for its renewals.
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()

        def end() -> None:
            ended.set()
            # ``do`` may end it itself, and no thread can join itself.
            if thread is not threading.current_thread():
                thread.join()

        return end


MACHINE = MachineClock()
