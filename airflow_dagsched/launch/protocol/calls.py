"""How a step is called: values that stand for rows and for the run's context, and the call that holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Output:
    """Names a dataset: one output of one step. The placeholder for a DataFrame in a call's arguments."""

    step: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ContextValue:
    """Placeholder in a call's arguments for a value of the run's context."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """What a step executes: pickled by value, one per step, in the payload."""

    function: Callable[..., Any] | None
    """None for a SQL step: ``sql`` then holds its text, and ``kwargs`` its views by name."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    sql: str | None = None
