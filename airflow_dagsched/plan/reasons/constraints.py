"""What the author asked for that the dataflow itself does not need, and where it is in the plan."""

from __future__ import annotations

from msgspec import Struct

Placed = tuple[str, str]
"""A step and its group."""


class StepsIsolated(Struct, frozen=True):
    """Steps that are in groups of their own."""

    steps: tuple[Placed, ...]


class StepsApart(Struct, frozen=True):
    """Steps of one list ``apart``."""

    steps: tuple[Placed, ...]


class StepsTogether(Struct, frozen=True):
    """Steps of one list ``together``."""

    steps: tuple[str, ...]
    groups: tuple[str, ...]


class StepsLimited(Struct, frozen=True):
    """At most so many steps a group."""

    most: int
    largest: int
    """Steps of the largest group."""


class FailuresExpected(Struct, frozen=True):
    """Groups priced with the repeats that failures cost."""

    per_hour: float
    makespan_s: float
    """With these repeats."""


class SpillsLimited(Struct, frozen=True):
    """What spills may take at once."""

    most_bytes: int
    """That they do take at once."""
    spill_mb: int


Constraint = StepsIsolated | StepsApart | StepsTogether | StepsLimited | FailuresExpected | SpillsLimited
