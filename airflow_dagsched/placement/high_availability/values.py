"""What goes into the policy and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.space import Seat

# A word, where Kafka has -2 among its offsets: nothing can take it for a small lag.
RUNNING: Final = "running"
Lag = float | None | Literal["running"]
"""How far a copy is behind, in the unit of ``acceptable_recovery_lag``; None: unknown."""

Lags = Mapping[str, Mapping[str, Lag]]
"""Lags by instance, then worker. A worker that is left out has nothing of the instance's state."""

Copy = Literal["active", "standby"]
How = Literal["hand over", "warm up", "wait", "no room"]
"""Now; when the copy at the target has caught up; when there is a warm-up to spare; when the target has room."""


class Instance(Struct, frozen=True):
    """One parallel copy of a step."""

    id: str
    step: str
    stateful: bool = True
    weight: float = 1.0
    """Load it puts on its worker, against that of other instances."""
    pinned: frozenset[str] = frozenset()
    """The only workers it may be on; empty: any."""


class Worker(Struct, frozen=True):
    """A live worker; ``capacity`` is what its load is divided by."""

    id: str
    capacity: int = 1
    tags: Mapping[str, str] = field(default_factory=dict)


class Movement(Struct, frozen=True):
    """A copy that changes its worker, now or once its state is there."""

    instance: str
    source: str
    target: str
    lag: float | None
    """How far the copy at the target is behind; None: unknown, or all of the state."""
    copy: Copy
    how: How
    limit: float
    """Lag up to which the copy counts as caught up."""

    @property
    def reason(self) -> str:
        """One sentence for plan and UI."""
        behind = "lag unknown" if self.lag is None else f"lag {self.lag:g}"
        kind = "" if self.copy == "active" else " of the standby"
        match self.how:
            case "hand over":
                return f"hand-over{kind}: {self.source} gives it up, {self.target} takes it with {behind}"
            case "warm up":
                return f"warm-up{kind}: {self.target} has {behind}, takes over at {self.limit:g}"
            case "wait":
                return f"waits{kind}: {self.target} has {behind}, all warm-ups are in use"
            case "no room":
                return f"waits{kind}: {self.target} has {behind}, and no room for it yet"


class Outcome(Struct, frozen=True):
    """Where each instance is, what moves, and whether to plan again after ``follow_up_s``."""

    assignment: Assignment
    movements: tuple[Movement, ...] = ()
    follow_up: bool = False
    seats: Mapping[Seat, int] = field(default_factory=dict)
    """The offer that each copy is in, by position of instance and worker; empty where there is room everywhere."""
