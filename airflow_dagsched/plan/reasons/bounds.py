"""Why no plan can take less than its lower bound."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class LongestPath(Struct, frozen=True):
    """Steps and ordinary tasks that run one after another."""

    names: tuple[str, ...]
    tasks: frozenset[str]
    """Those of the names that are ordinary tasks."""
    is_parted: bool
    """Whether streaming steps on it are in different groups since what lies between them does not fit at once."""


class CoreSecondsNeeded(Struct, frozen=True):
    """All that the steps compute has to find room on the cores."""

    core_seconds: float
    cores: int


class MemoryNeeded(Struct, frozen=True):
    """What the steps hold, for as long as they run, has to find room in the memory."""

    memory_mb: int
    """Free on all workers."""


class CoresShared(Struct, frozen=True):
    """There are more long instances than cores: some core has several of them, one after another."""

    cores: int


class PhasesNeeded(Struct, frozen=True):
    """What must run before or behind these steps does not fit beside them."""

    names: tuple[str, ...]


class GroupingsTried(Struct, frozen=True):
    """There is no other grouping, list or order of launches."""

    count: int


BoundReason = (
    LongestPath
    | CoreSecondsNeeded
    | MemoryNeeded
    | CoresShared
    | PhasesNeeded
    | GroupingsTried
    | Literal["solver", "run has begun", "nothing to run"]
)


def is_exact_proof(reason: BoundReason) -> bool:
    """Whether only the exact mode can derive the bound again."""
    return reason == "solver" or isinstance(reason, PhasesNeeded | GroupingsTried)
