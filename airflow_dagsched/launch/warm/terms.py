"""How long an application may stay warm, and what ends it before."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

UNITS = {"s": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*")
LONGEST_S = 24 * 3600.0
MOST_IDLE = 4
"""Applications that may wait at once on a host, of one user."""
MOST_HEAP = 0.7
"""Share of Java's heap that may still be taken once it has been collected after a run."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What was agreed for one application."""

    idle_s: float
    """So long it waits for its next run; after each run as that one's launch says."""
    most_runs: int
    most_idle: int = MOST_IDLE
    most_heap: float = MOST_HEAP


def can_stay(manager: str) -> bool:
    """Whether an application may go on with another run: executors' pods are made from files of one submit."""
    return manager != "kubernetes"


def read_duration(told: object) -> float:
    """Seconds in ``"10 minutes"``, ``"90 s"``, ``timedelta(minutes=10)``, or a number of seconds; "" and None are 0.

    Raises ``ValueError`` for anything else, and for more than a day.
    """
    if told is None or told == "" or told is False:
        return 0.0
    seconds = told.total_seconds() if isinstance(told, timedelta) else _read_seconds(told)
    if not 0 <= seconds <= LONGEST_S:
        raise ValueError("a warm application stays for 0 seconds to a day")
    return seconds


def _read_seconds(told: object) -> float:
    if isinstance(told, int | float) and not isinstance(told, bool):
        return float(told)
    match = _DURATION.fullmatch(told.lower()) if isinstance(told, str) else None
    unit = UNITS.get(match[2]) if match else None
    if match is None or unit is None:
        raise ValueError(f"a time is written as '10 minutes', '90 s' or '1 hour', not {told!r}")
    return float(match[1]) * unit
