"""What drivers show of themselves, what people order, and what of both an executor sees at one look.

None of it is the truth of the protocol: a sign may be late, an order may be placed twice, a lease may run out under a
driver that lives. What follows from that is at most that a graph is started again, or a switch is given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from airflow_dagsched.launch.protocol.events import FailureKind

Phase = Literal["starting", "ready", "running", "idle", "stopping", "standby"]
"""Ready: its graph is made, and waits for what the owner hands on. Standby: an application without a graph."""
Order = Literal["stop", "confirm", "abort"]
ORDERS: tuple[Order, ...] = ("stop", "confirm", "abort")
FRESH_S = 30.0
"""Seconds for which a sign says that its driver lives; one is written every 2 s, and after each batch."""
HEAD_START_S = 45.0
"""Seconds since the last sign of a lost driver, for which it is a standby's to take over: as long as its lease may
last, and some looks.
"""
LONGEST_WAIT_S = 300.0
"""Most seconds between two starts of one epoch."""


@dataclass(frozen=True, slots=True)
class Sign:
    """The driver of an epoch lives, and is so far."""

    epoch: int
    application: str
    at: float
    phase: Phase
    batch: Mapping[str, int] = field(default_factory=dict)
    """Query -> last batch."""
    rows_s: float | None = None
    batch_s: float | None = None
    trigger_s: float = 0.0
    watermark: float | None = None
    """The lowest of all queries, in seconds since 1970."""
    newest: Mapping[str, float | None] = field(default_factory=dict)
    """Source -> newest event time read."""
    state_rows: int = 0
    state_bytes: int = 0
    late: int = 0
    """Rows that came too late for their window."""
    ahead: int = 0
    """Rows that were left out, as their event time is too far ahead of the clock."""
    nulls: int = 0
    """Rows that were left out, as they have none."""
    behind_rows: int | None = None
    behind_s: float | None = None
    waits_for: str = ""
    pid: int = 0
    host: str = ""
    ui: str = ""
    """Address of Spark's own page."""
    hosts: tuple[str, ...] = ()
    """Of its executors; none: it has none, or Spark runs in the driver."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the last driver of an epoch ended."""

    code: int
    kind: FailureKind | None
    """None: nothing failed."""
    at: float
    step: str = ""
    message: str = ""
    traceback: str = ""
    batches: int = 0
    """Recorded since that driver started."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Code of which no epoch could be asked for, as a run found: another run of it would find the same."""

    fingerprint: str
    run_id: str
    at: float
    """In seconds since 1970."""
    reason: str


@dataclass(frozen=True, slots=True)
class Starts:
    """Starts of an epoch's driver after each other without a batch, with the last one's time."""

    count: int
    at: float


@dataclass(frozen=True, slots=True)
class Follower:
    """The task that follows an epoch."""

    run_id: str
    max_tries: int
    """Number of the last try that Airflow allows it: all its retries have the same, after each clear it is greater."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at what is not in the log."""

    now: float
    held: frozenset[int] = frozenset()
    """Epochs whose lease somebody holds, or whose driver starts."""
    signs: Mapping[int, Sign] = field(default_factory=dict)
    ended: Mapping[int, Ended] = field(default_factory=dict)
    starts: Mapping[int, Starts] = field(default_factory=dict)
    orders: Mapping[int, Mapping[Order, str]] = field(default_factory=dict)
    """Epoch -> order -> its reason."""
    committed: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Epoch that hands its state on -> query -> last batch that Spark has committed: so far the state is on disk."""
    paused: frozenset[str] = frozenset()
    """States in which nothing is to be done."""


def is_alive(sign: Sign | None, now: float) -> bool:
    """Whether the driver that wrote the sign still lives, as far as that shows."""
    return sign is not None and now - sign.at <= FRESH_S


def find_next_start(starts: Starts | None, now: float) -> float:
    """When an epoch may be started again: later each time that no batch came of it.

    :param now: in seconds since 1970. A start long behind it was noted by a clock that has been set back since, so
        nobody waits for it: the next one is noted by the clock as it is.
    """
    if starts is None or starts.count == 0 or starts.at > now + LONGEST_WAIT_S:
        return 0.0
    # The exponent is held down: 2.0 ** 5000 is no float.
    return starts.at + min(LONGEST_WAIT_S, 2.0 ** min(starts.count - 1, 60))
