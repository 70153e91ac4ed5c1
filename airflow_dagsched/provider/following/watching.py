"""Watches whether an application that runs has executors; where it hasn't for a while, asks whether it ever may."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_dagsched.launch.escalation.stranded import Without

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Watch:
    """Of one submit. ``verdict``: why it can never have an executor, empty where it can; asks the cluster manager."""

    within_s: float
    """Seconds without an executor after which it is asked, and asked again."""
    verdict: Callable[[], str]
    stop: Callable[[], None]
    """Stops the application."""
    stranded: str = ""
    """Why it was stopped; empty: it was not."""
    _without: Without = field(default_factory=Without)

    def look(self, executors: int | None, now_s: float) -> None:
        """The application has so many (None: it needs none, or hasn't said), at ``now_s`` of a monotonic clock."""
        self._without = self._without.after(executors, now_s)
        if self.stranded or not self._without.has_lasted(self.within_s, now_s):
            return
        # Asked again when as much time has passed, not with every line from now on.
        self._without = Without()
        self.stranded = self._ask_verdict()
        if self.stranded:
            self.stop()

    def _ask_verdict(self) -> str:
        """A manager that doesn't answer is no reason to stop what it may still serve; nor an Airflow that doesn't."""
        try:
            found = self.verdict()
        # A wrong stop costs a run, a late one some time.
        except Exception as error:  # noqa: BLE001 - see above
            log.warning("no executor for %g s; whether one can come is not known: %s", self.within_s, error)
            return ""
        if not found:
            log.info("no executor for %g s; its workers are there: it waits for its turn", self.within_s)
        return found
