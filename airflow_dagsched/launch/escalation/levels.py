"""What changes after a failure: never the same again where that must fail again.

::

    ended with             next
    out of memory          twice the memory, one step at a time
    out of memory again    four times the memory, in two applications, one after another
    and again              eight times the memory, one application a step
    anything else          the same

Out of memory is tried again at once, by the same try of the launch task; what it committed is reused.
"""

from __future__ import annotations

from msgspec import Struct

from airflow_dagsched.launch.protocol.events import FailureKind


class Level(Struct, frozen=True):
    """How one submit differs from the plan."""

    memory_factor: int = 1
    one_at_a_time: bool = False
    halved: bool = False
    per_step: bool = False

    def __str__(self) -> str:
        how = "one application a step" if self.per_step else "in two applications" if self.halved else ""
        parts = (f"{self.memory_factor} times the memory" if self.memory_factor > 1 else "as planned", how)
        return ", ".join(part for part in parts if part)


# Memory is asked for first, since that is free; each application more costs a start of some 10 CPU seconds.
LEVELS = (Level(), Level(2, True), Level(4, True, halved=True), Level(8, True, per_step=True))


def choose_next_level(level: int, failure: FailureKind | None) -> int:
    """Index into ``LEVELS`` for what follows one at ``level`` that ended with ``failure``."""
    # More memory mends nothing else.
    return min(level + 1, len(LEVELS) - 1) if failure == "out_of_memory" else level
