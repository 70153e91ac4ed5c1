"""What is asked of the protocol, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_dagsched.launch.streams.settings import Channel
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.state import State


@dataclass(frozen=True, slots=True)
class Wanted:
    """An epoch that a launch task asks for."""

    fingerprint: str
    run_id: str
    folder: str
    """Of the epoch, made before: two that ask have two."""
    reads: Mapping[str, tuple[str, ...]]
    """Query -> sources that it reads."""
    window: float
    """Length of the flow's windows in seconds."""
    reach: float = 0.0
    """See ``Epoch.x_reach``."""
    drain: int = 1
    """See ``Epoch.x_drain``."""
    channel: Channel = "replay"
    overlap: Literal["beside", "sequential"] = "beside"
    confirm: Literal["auto", "manual"] = "auto"
    order: Literal["any", "window"] = "any"
    standbys: int = 0
    """See ``Epoch.x_standbys``."""
    max_ahead: float = 86_400.0
    """Seconds by which event times may be ahead of the clock."""
    start: Mapping[str, Any] | None = None
    """Source -> offset that the author names."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """See ``Epoch.x_sources``."""
    again: bool = False
    """Also where the same code runs."""
    why: str = ""
    """See ``Epoch.x_why``."""
    open_windows: bool = False
    """Take over from a graph that can run no more although windows of it are open: late rows of them are lost."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long is waited, in seconds, and how often tried, before a switch is given up."""

    deploy_s: float = 900.0
    """For a new graph to start."""
    stuck_s: float = 1800.0
    """For its next batch."""
    catch_up_s: float = 21_600.0
    """Of batches, one a trigger, until it is as far as the old graph."""
    tries: int = 3
    """Starts of a new graph after each other without a batch."""
    crashes: int = 5
    """Starts of the owner after each other without a batch."""


@dataclass(frozen=True, slots=True)
class Append:
    """Add this record, if it is still what is advised when it gets its number."""

    record: Record


@dataclass(frozen=True, slots=True)
class Deploy:
    """Start an epoch for the first time, or again, not before a time in seconds since 1970."""

    epoch: int
    not_before: float = 0.0


@dataclass(frozen=True, slots=True)
class Halt:
    """Let the running batches of an epoch end, and its driver."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Let no row be routed any more as before, then add the fence to an epoch, behind all that was routed."""

    epoch: int
    """The new one."""


@dataclass(frozen=True, slots=True)
class FinishMoves:
    """Move what the epoch's recorded batches have left aside into the tables."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Answer:
    """To who asks, or orders: it is so already, not yet, or never."""

    kind: Literal["tell", "wait", "refuse"]
    reason: Reason


Command = Append | Deploy | Halt | Hold | FinishMoves | Answer
"""To be done in order, as far as a process can; after ``FinishMoves`` only by one that can. Each may be done twice."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What is to be done, and what is waited for."""

    state: State
    commands: tuple[Command, ...] = ()
    waits_for: tuple[Reason, ...] = field(default=())

    @property
    def record(self) -> Record | None:
        """The record to add; there is one at most."""
        return next((each.record for each in self.commands if isinstance(each, Append)), None)
