"""What the driver program tells the launch task: one JSON line a batch, in a file and on stdout.

Events that belong together (a commit turns several steps green at once) are one line, so that they reach
the mirrors together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_dagsched.launch.protocol.printable import format_duration
from airflow_dagsched.launch.protocol.wire import Unreadable, encode_plain, fit_dataclass, load_json

MARKER = "::dagsched"

StepState = Literal["success", "reused", "failed", "skipped", "upstream_failed", "pruned"]
FailureKind = Literal["author", "out_of_memory", "lost_executor", "lost_driver", "refused", "timeout"]


@dataclass(frozen=True, slots=True)
class Started:
    """The application runs: once, first."""

    application_id: str
    ui: str | None = None
    warm_run: int | None = None
    """Which run of a warm application this is; None: the application is its own."""
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class StepRunning:
    """The step's function was called."""

    step: str
    kind: Literal["running"] = "running"


@dataclass(frozen=True, slots=True)
class StepLog:
    """Lines the step printed or logged."""

    step: str
    lines: tuple[str, ...]
    kind: Literal["log"] = "log"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a step, or the whole driver, failed."""

    kind: FailureKind
    message: str
    traceback: str = ""


SOME_ROWS = "-some"
"""Ends the folder of a dataset with only the rows that its readers ask for: without its record they pass for all."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How much of a dataset is there, where its readers do not use all."""

    columns: int
    """Of the dataset."""
    kept: int
    """Of these."""
    share: float
    """Bytes of a row that is kept to those of one of the dataset, by the types of its columns."""
    where: tuple[str, ...] = ()
    """What the rows fulfil that are stored, as SQL; all are where nothing is asked of them."""

    def describe(self) -> str:
        """For the step's log."""
        return f"{self.kept} of {self.columns} columns, those that are read: {self.share:.2f} of the bytes"


@dataclass(frozen=True, slots=True)
class StepDone:
    """The step reached its end. Unknown numbers are None, never guesses."""

    step: str
    state: StepState
    rows: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    """Of the job that materialised it, together with the steps in ``fused``."""
    fused: tuple[str, ...] = ()
    datasets: Mapping[str, str] = field(default_factory=dict)
    """Committed outputs: output name -> path."""
    path: str | None = None
    """Where its (first) committed output is: the table it writes, else its dataset."""
    wrote: str | None = None
    """Asset URI of the table written, or reused."""
    value: Any = None
    """The plain JSON value the step returned."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    reason: str = ""
    """Why it was skipped, reused, pruned or not run."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Of what it committed: output -> bytes."""
    assumed: Mapping[str, int] = field(default_factory=dict)
    """Of what was counted, and not stored: output -> rows times the width of a row, by its columns' types."""
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    """Outputs that have only the columns that are read."""
    kind: Literal["done"] = "done"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The driver lives: about once a second."""

    executors: int | None = None
    """How many the application has; None: it needs none, or can't tell."""
    kind: Literal["heartbeat"] = "heartbeat"


@dataclass(frozen=True, slots=True)
class Stalled:
    """Nothing of the step moved for a while: no task ended, no row was read."""

    step: str
    seconds: float
    """0: it goes on."""
    waits_for: str
    kind: Literal["stalled"] = "stalled"

    @property
    def line(self) -> str:
        """For the step's log."""
        return f"no progress for {format_duration(self.seconds)}: {self.waits_for}" if self.seconds else self.waits_for


@dataclass(frozen=True, slots=True)
class ColumnsRead:
    """Which columns of stored datasets the application has read, of which rows: once, when all its steps have ended
    well, and when more was asked for than is stored.
    """

    read: Mapping[str, Mapping[str, tuple[str, ...] | None]]
    """``step/output`` -> reader -> names of columns; None: all."""
    where: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """``step/output`` -> reader -> what it asked of each row before anything else, as SQL; others nothing."""
    kind: Literal["columns_read"] = "columns_read"


@dataclass(frozen=True, slots=True)
class MadeAgain:
    """A stored dataset is made again, since it has only the columns and rows that were read of it before."""

    step: str
    """That hears of it."""
    output: str
    """``step/output`` of the dataset."""
    cause: Literal["other_code", "more_columns"]
    """The code that reads it is another one; or the same code has asked for more than when it last ran."""
    kept: int
    """Columns that were stored."""
    columns: int
    """Columns there are."""
    where: tuple[str, ...] = ()
    """What the rows fulfil that were stored, as SQL."""
    kind: Literal["made_again"] = "made_again"

    @property
    def line(self) -> str:
        """For the step's log."""
        why = "its readers' code has changed" if self.cause == "other_code" else "more of them are read now"
        name = self.output.removesuffix("/")
        rows = f" of the rows with {' and '.join(self.where)}" if self.where else ""
        return f"{name} is made again ({self.cause}): {self.kept} of {self.columns} columns{rows} are stored, {why}"


@dataclass(frozen=True, slots=True)
class Finished:
    """Last of all. A driver that ends without it was lost."""

    ok: bool
    seconds: float
    failure: Failure | None = None
    kind: Literal["finished"] = "finished"


Event = Started | StepRunning | StepLog | StepDone | Heartbeat | Stalled | ColumnsRead | MadeAgain | Finished
KINDS: dict[str, type[Event]] = {
    "started": Started,
    "running": StepRunning,
    "log": StepLog,
    "done": StepDone,
    "heartbeat": Heartbeat,
    "stalled": Stalled,
    "columns_read": ColumnsRead,
    "made_again": MadeAgain,
    "finished": Finished,
}


def encode_batch(events: Iterable[Event]) -> str:
    """One batch as one line of JSON, without a newline."""
    return json.dumps([encode_plain(event) for event in events], separators=(",", ":"))


def decode_batch(line: str) -> tuple[Event, ...]:
    """The batch in ``line``; kinds this version does not know are left out. Raises ``Unreadable``: a batch is whole."""
    batch = load_json(line)
    if not isinstance(batch, list):
        raise Unreadable("a batch of events is a list")
    return tuple(event for raw in batch if (event := _read_event(raw)) is not None)


def _read_event(raw: Any) -> Event | None:
    """None for one of a kind that this version does not know. Raises ``Unreadable``."""
    kind = raw.get("kind") if isinstance(raw, Mapping) else None
    if not isinstance(kind, str):
        raise Unreadable("something among the events is none")
    # A newer driver's further kinds do not stop an older launch task.
    event = fit_dataclass(KINDS[kind], raw) if kind in KINDS else None
    if event is None and kind in KINDS:
        raise Unreadable(f"an event of kind {kind!r} is not as it should be")
    return event


@dataclass(frozen=True, slots=True)
class Marked:
    """What a marker line says."""

    number: int
    """How many batches the event file has by now, this one included; a heartbeat is not in the file."""
    events: tuple[Event, ...]


def encode_marker(nonce: str, number: int, events: Iterable[Event]) -> str:
    """The batch as a line for stdout. The nonce keeps what a step prints from passing as an event."""
    return f"{MARKER} {nonce} {number} {encode_batch(events)}"


def decode_marker(line: str, nonce: str) -> Marked | None:
    """What a line of the driver's output marks; None if it is no marker of this try.

    Raises ``ValueError`` for a torn one: spark-submit passes lines on in pieces, and Java's own output may come
    between two. The event file has it whole.
    """
    prefix = f"{MARKER} {nonce} "
    # Anywhere in the line: what a step printed before it may have had no newline.
    at = line.find(prefix)
    if at < 0:
        return None
    number, _, batch = line[at + len(prefix) :].partition(" ")
    return Marked(int(number), decode_batch(batch))
