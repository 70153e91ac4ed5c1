"""Values that stand for rows and for the run's context in a step's call, until it is called."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """Names a dataset: one output of one step. The placeholder for a DataFrame in a call's arguments."""

    step: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ContextValue:
    """Placeholder in a call's arguments for a value of the run's context."""

    name: str
