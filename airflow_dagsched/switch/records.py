"""The records of a flow's log, and their JSON: one object a record, keys as they are named here.

Keys that begin with ``x_`` may be missing, and unknown ones may be there: whoever compacts the log keeps them. Any
other unknown key or kind is refused: a reader that passed over it could judge otherwise than its writer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.wire import encode_plain, fit_dataclass
from airflow_dagsched.launch.streams.settings import Channel, Confirm, Order

Overlap = Literal["beside", "sequential", "cold"]
"""Both graphs run at once; one after the other, for want of room; the owner can run no more."""
Cause = Literal["author", "person", "time", "replaced", "lost"]
"""Why an epoch ended: its code fails, someone said so, it took too long, another came, its driver stays away."""


class GarbledLog(DagschedError):
    """A file of the log is something else than it should be, or is missing: nobody can say what is true.

    :param path: of the file.
    """

    def __init__(self, path: str, what: str) -> None:
        self.path, self.what = path, what

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbered:
    n: int
    """Its place in the log, from 1."""
    at: float
    """When it was written, in seconds since 1970 by the clock of the writer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch(_Numbered):
    """A version of the graph is asked for."""

    epoch: int
    fingerprint: str
    """Of the steps and all settings that make the graph."""
    run_id: str
    channel: Channel = "replay"
    start: Mapping[str, Any] | None = None
    """Source, or ``query/source`` where several queries read it -> offset to read from; null: from the beginning."""
    boundary: float | None = None
    """The graph has all rows of windows behind this one."""
    x_folder: str = ""
    """Name of its folder below ``epochs``."""
    x_after: int = 0
    """The epoch it follows, which is the owner; 0: none, or not said."""
    x_queries: tuple[str, ...] = ()
    """Steps that write, each a query."""
    x_window: float = 0.0
    """Length of the flow's windows in seconds; 0: not known."""
    x_reach: float = 0.0
    """Seconds by which the first row of a window may lie before the flow's window that the row is in: of sliding ones,
    their length less their slide.
    """
    x_rows_from: float | None = None
    """Rows of earlier event time are dropped as they are read."""
    x_drain: int = 1
    """Batches that must begin behind the fence before a query has emitted all windows before it."""
    x_overlap: Overlap = "beside"
    x_confirm: Confirm = "auto"
    x_order: Order = "any"
    x_standbys: int = 0
    """Applications that wait for its driver to be lost."""
    x_sources: Mapping[str, str] = field(default_factory=dict)
    """Source -> digest of how it is read, but for where it begins."""
    x_named: Mapping[str, Any] = field(default_factory=dict)
    """Source -> offset that the author named."""
    x_read: Mapping[str, int] = field(default_factory=dict)
    """Query -> rows that the epoch it follows had read of its source where this one begins; none: not known."""
    x_why: str = ""
    """Why it is asked for, where it is of the same code as the one before it: a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(_Numbered):
    """The queries of an epoch are active, for the first time or again."""

    epoch: int
    application: str
    x_run_id: str = ""
    """The run that follows it, where that is another than the one it was asked for by."""
    x_pid: int = 0
    x_host: str = ""
    x_workers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(_Numbered):
    """A query has executed a batch; ``kept`` of its rows are the table's from now on."""

    epoch: int
    query: str
    batch: int
    """As Spark counts, from 0."""
    first: float | None
    """Oldest window of its rows; null: it has no rows."""
    last: float | None
    rows: int
    kept: int
    watermark: float
    """That it began with, in seconds since 1970; 0: none yet."""
    files: tuple[str, ...]
    x_begin: Mapping[str, Any] = field(default_factory=dict)
    """Source -> offset that the batch began at; null: the start."""
    x_newest: Mapping[str, float | None] = field(default_factory=dict)
    """Source -> newest event time of all rows before the batch; null: there was no row; missing: unknown."""
    x_tag: str = ""
    """Tells its files from those of another try of the same batch."""
    x_end: str = ""
    """Digest of what Spark's checkpoint says of the batch: a try that has another one is of other rows."""
    x_late: int = 0
    """Rows of the epoch that came too late for their window, as far as was known when the record was made: so are the
    next two. A step that makes groups counts those of each task, not their rows.
    """
    x_ahead: int = 0
    """Rows left out, as their event time was too far ahead of the clock."""
    x_nulls: int = 0
    """Rows left out, as they had none."""
    x_read: int = 0
    """Rows that the epoch's query had read before the batch, as Spark counts what a source gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence(_Numbered):
    """From here on windows behind ``upto`` are the successor's. There is no way back."""

    from_: int
    to: int
    upto: float
    x_upto: Mapping[str, float] = field(default_factory=dict)
    """By query, where the owner's ended at different windows; ``upto`` holds for all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained(_Numbered):
    """The owner has emitted all windows before the fence."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Current(_Numbered):
    """The epoch is the owner from now on."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(_Numbered):
    """Nothing of the epoch runs. It may be started again, unless it is drained."""

    epoch: int
    reason: str
    x_cause: Cause = "replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted(_Numbered):
    """The epoch will own nothing: it might as well never have been."""

    epoch: int
    reason: str
    x_cause: Cause = "replaced"


Record = Epoch | Started | Batch | Fence | Drained | Current | Stopped | Aborted
KINDS: Mapping[str, type[Record]] = {
    "epoch": Epoch,
    "started": Started,
    "batch": Batch,
    "fence": Fence,
    "drained": Drained,
    "current": Current,
    "stopped": Stopped,
    "aborted": Aborted,
}
"""Kind -> record, in the order in which an epoch meets them."""
_KIND_OF = {kind: name for name, kind in KINDS.items()}
_RENAMED = {"from_": "from"}
"""A word of Python, and of the log."""
_OFFSETS = {"start", "x_begin", "x_named"}
"""What a source wrote, as it wrote it."""


def name_kind(record: Record) -> str:
    """Its ``kind``."""
    return _KIND_OF[type(record)]


def encode_record(record: Record) -> str:
    """The record as one line of JSON. What begins with ``x_`` and says nothing is left out."""
    raw: dict[str, Any] = {"n": record.n, "at": _shorten(record.at), "kind": name_kind(record)}
    for each in fields(record):
        value = getattr(record, each.name)
        if not (each.name.startswith("x_") and value == _get_default(each)):
            plain = encode_plain(value)
            raw[_RENAMED.get(each.name, each.name)] = plain if each.name in _OFFSETS else _shorten(plain)
    return json.dumps(raw)


def fit_record(raw: Any, name: str) -> Record:
    """The record that parsed JSON holds. Raises ``GarbledLog``.

    :param name: of the file, for the error.
    """
    kind = KINDS.get(str(raw.get("kind"))) if isinstance(raw, Mapping) else None
    if kind is None:
        raise GarbledLog(name, "is no record of a kind that is known here")
    known = {_RENAMED.get(each.name, each.name): each.name for each in fields(kind)}
    strange = sorted(key for key in raw if key not in known and key != "kind" and not key.startswith("x_"))
    if strange:
        raise GarbledLog(name, f"has fields that are not known here: {', '.join(strange)}")
    record = fit_dataclass(kind, {known[key]: value for key, value in raw.items() if key in known})
    if record is None:
        raise GarbledLog(name, f"is no record of kind {raw['kind']!r}: a field is missing or of another type")
    return record


def _get_default(each: Any) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default


def _shorten(value: Any) -> Any:
    """Whole numbers without a point: a window has one name."""
    if isinstance(value, Mapping):
        return {key: _shorten(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
