"""Why something is waited for, refused or given up: a code, and what it is about. ``say`` has the sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Code = Literal[
    "already runs",
    "already followed",
    "unlike code",
    "already asked for",
    "switch ends first",
    "owner has no batch",
    "newest row unknown",
    "ahead of the clock",
    "windows are open",
    "windows stay open",
    "unlike windows",
    "longer windows",
    "source changed",
    "carried source",
    "other way of rows",
    "inbox sources",
    "old runs again",
    "old fails",
    "old must emit",
    "replaced by a request",
    "replaced",
    "no executors",
    "no progress",
    "never catches up",
    "fails",
    "comes to nothing",
    "comes to nothing silently",
    "ordered",
    "only forward",
    "waits for confirm",
    "catches up",
    "waits for rows",
    "drains",
    "hands on",
    "makes room",
    "nothing runs",
    "no switch",
    "needs no word",
    "nothing to confirm",
    "paused",
]


@dataclass(frozen=True, slots=True)
class Reason:
    """A code, with what it is about; which fields there are depends on the code."""

    code: Code
    epoch: int = 0
    window: float | None = None
    """Or another time, in seconds since 1970."""
    names: tuple[str, ...] = ()
    """Queries or sources."""
    seconds: float = 0.0
    text: str = ""
    """What somebody else wrote: an exception's text, a person's words."""
