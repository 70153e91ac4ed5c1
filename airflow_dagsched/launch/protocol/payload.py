"""How a step is called in the driver: what a parse of a DAG file has no use for, and a payload is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """What a step executes: pickled by value, one per step, in the payload."""

    function: Callable[..., Any] | None
    """None for a SQL step: ``sql`` then holds its text, and ``kwargs`` its views by name."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    sql: str | None = None
