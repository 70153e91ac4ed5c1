"""What the next try changes after a failure: never the same again where that must fail again.

::

    try failed of          next try
    out of memory          twice the memory, one step at a time
    out of memory again    four times the memory, one application a step
    anything else          the same
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_dagsched.launch.events import FailureKind


@dataclass(frozen=True, slots=True)
class Level:
    """How one try differs from the plan."""

    memory_factor: int = 1
    one_at_a_time: bool = False
    per_step: bool = False


LEVELS = (Level(), Level(2, True), Level(4, True, True))


def next_level(level: int, failure: FailureKind | None) -> int:
    """Index into ``LEVELS`` for the try after one at ``level`` that ended with ``failure``."""
    return min(level + 1, len(LEVELS) - 1) if failure == "out_of_memory" else level
