"""Values that stand for rows, and for what else is known later, in a step's call, until it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Given = Literal["rows", "key"]
"""Of a source its raw rows; of a sink the key by which a repeated batch is known."""


@dataclass(frozen=True, slots=True)
class Output:
    """Names a dataset: one output of one step. The placeholder for a DataFrame in a call's arguments."""

    step: str
    name: str = ""

    @property
    def key(self) -> str:
        """``step/output``, by which manifests and events name it."""
        return f"{self.step}/{self.name}"


@dataclass(frozen=True, slots=True)
class ContextValue:
    """Placeholder in a call's arguments for a value of the run's context."""

    name: str


@dataclass(frozen=True, slots=True)
class Handed:
    """Placeholder for what a function of a stream is given by whoever calls it: see ``Given``."""

    what: Given
