"""The interval a run is for, as a step sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Interval:
    """Half open ``[start, end)``, time-zone aware; ``key`` is what commits are filed under.

    ``start`` and ``end`` are None where the run's partition has a key but no date.
    """

    key: str
    start: datetime | None = None
    end: datetime | None = None
