"""What a host does next: a table of what it is in, and what happens.

::

    waiting ──asked──> preparing ──prepared──> running ──ended well──> cleaning ──clean──> idle ──asked──> trying
       │                                          │ ^                     │                 │                │
       │                                          │ └──── prepared: run is taken only now ──│────────────────┤
       └── nobody comes ──────> ending <── broke ─┘ <──── not clean ──────┘ <──── overdue ──┘ <──── unfit ───┘

A run that broke half-way ends its application: what it left running in Java can be seen by nobody. Whose Spark is gone
when a run comes has not taken it, and whoever asked goes elsewhere; the first run of all hears what Spark met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from airflow_dagsched.launch.warm.terms import Terms

State = Literal["waiting", "preparing", "running", "cleaning", "idle", "trying", "ending"]
Event = Literal["asked", "prepared", "ended", "broke", "left", "clean", "unfit", "overdue", "told", "told_at_once"]
Command = Literal["take", "prepare", "fork", "report", "clean", "kill", "end"]

AT_WORK = ("preparing", "trying", "running")
"""States of a host that has a run, or is about to."""
FIRST_WITHIN_S = 60.0
"""Whoever starts a host asks for a run at once."""

TABLE: dict[tuple[State, Event], tuple[State, tuple[Command, ...]]] = {
    ("waiting", "asked"): ("preparing", ("take", "prepare")),
    ("waiting", "overdue"): ("ending", ("end",)),
    ("idle", "asked"): ("trying", ("prepare",)),
    ("idle", "overdue"): ("ending", ("end",)),
    ("trying", "prepared"): ("running", ("take", "fork")),
    ("trying", "unfit"): ("ending", ("end",)),
    ("trying", "left"): ("ending", ("end",)),
    ("trying", "told_at_once"): ("ending", ("end",)),
    ("preparing", "prepared"): ("running", ("fork",)),
    ("preparing", "left"): ("ending", ("end",)),
    ("running", "ended"): ("cleaning", ("report", "clean")),
    ("running", "broke"): ("ending", ("report", "end")),
    ("running", "left"): ("ending", ("kill", "end")),
    ("cleaning", "clean"): ("idle", ()),
    ("cleaning", "unfit"): ("ending", ("end",)),
    ("cleaning", "told"): ("ending", ("end",)),
    ("waiting", "told"): ("ending", ("end",)),
    ("idle", "told"): ("ending", ("end",)),
    ("waiting", "told_at_once"): ("ending", ("end",)),
    ("idle", "told_at_once"): ("ending", ("end",)),
    ("cleaning", "told_at_once"): ("ending", ("end",)),
    ("preparing", "told_at_once"): ("ending", ("end",)),
    ("running", "told_at_once"): ("ending", ("kill", "end")),
}
"""What is not here changes nothing."""


@dataclass(frozen=True, slots=True)
class Serving:
    """How a host stands."""

    state: State
    since: float
    """Seconds of the monotonic clock."""
    runs: int = 0
    """That it has taken."""
    last: str = ""
    """Why the run that it serves is the last one; empty: it need not be."""
    reason: str = ""
    """Why it ends."""

    def find_deadline(self, terms: Terms) -> float | None:
        """When it ends if nothing happens until then; None: it is at work."""
        if self.state == "waiting":
            return self.since + FIRST_WITHIN_S
        return self.since + terms.idle_s if self.state == "idle" else None


def take_event(
    serving: Serving, event: Event, now: float, terms: Terms, reason: str = ""
) -> tuple[Serving, tuple[Command, ...]]:
    """How the host stands after ``event``, and what it has to do.

    :param reason: why, for what ends it.
    """
    if event == "told" and serving.state in AT_WORK:
        return replace(serving, last=serving.last or reason), ()
    # Of a run that was the last one nothing need be cleaned: the application goes.
    has_ended = (serving.state, event) == ("running", "ended")
    if has_ended and (last := serving.last or _find_end(serving, terms)):
        return Serving("ending", now, serving.runs, reason=last), ("report", "end")
    state, commands = TABLE.get((serving.state, event), (serving.state, ()))
    if state == serving.state:
        return serving, commands
    runs = serving.runs + ("take" in commands)
    return Serving(state, now, runs, serving.last, reason if state == "ending" else ""), commands


def _find_end(serving: Serving, terms: Terms) -> str:
    """Why the application ends with this run, though the run ended well; empty: it stays."""
    if serving.runs >= terms.most_runs:
        return f"it has served {serving.runs} runs"
    return "it is to stay for no time" if terms.idle_s <= 0 else ""
