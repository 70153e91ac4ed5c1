"""The records of an inbox's log, and their JSON. Times are seconds since 1970."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_dagsched.launch.protocol.wire import encode_plain, fit_dataclass
from airflow_dagsched.switch.records import GarbledLog

DEAD = 0
"""In place of an epoch: no graph takes the row any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbered:
    n: int
    """Its place in the log, from 1."""
    at: float
    """When it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed(_Numbered):
    """Rows of a batch are in the inbox from now on."""

    batch: int
    """As Spark counts, from 0."""
    newest: float | None
    """Newest event time of all rows, of this entry and all before it, that an epoch may have; None: there was none."""
    rows: Mapping[str, int]
    """Epoch, or ``DEAD`` -> rows of the batch."""
    dead: Mapping[str, int]
    """Why -> rows that no epoch has, of this entry and all before it."""
    files: tuple[str, ...] = ()
    """Below the folder of the inbox."""
    tag: str = ""
    """Tells its files from those of another try of the same batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(_Numbered):
    """What comes now is routed by the fence to this epoch."""

    epoch: int
    newest: float | None
    """See ``Routed``, of all entries before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared(_Numbered):
    """Rows of all entries up to one are removed: no graph needs them."""

    upto: int
    """Number of that entry."""


Entry = Routed | Held | Cleared
KINDS: Mapping[str, type[Entry]] = {"routed": Routed, "held": Held, "cleared": Cleared}
_KIND_OF = {kind: name for name, kind in KINDS.items()}


@dataclass(frozen=True, slots=True)
class RoutedRows:
    """What became of a batch's rows, as yet without a number."""

    batch: int
    newest: float | None
    """Newest event time of its rows that an epoch may have."""
    rows: Mapping[str, int] = field(default_factory=dict)
    dead: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    tag: str = ""


def encode_entry(entry: Entry) -> str:
    """The entry as one line of JSON."""
    return json.dumps({"kind": _KIND_OF[type(entry)], **encode_plain(entry)})


def fit_entry(raw: Any, name: str) -> Entry:
    """The entry that parsed JSON holds. Raises ``GarbledLog``.

    :param name: of the file, for the error.
    """
    kind = KINDS.get(str(raw.get("kind"))) if isinstance(raw, Mapping) else None
    entry = fit_dataclass(kind, raw) if kind else None
    if entry is None:
        raise GarbledLog(name, "is no entry of an inbox")
    return entry
