"""What a log says, sorted by what it is about: the rules ask these values, never the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Literal

MarkKind = Literal["epoch", "started", "drained", "current", "stopped", "aborted"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the log breaks, and where."""

    rule: str
    n: int
    """Of the record with which it is broken."""
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: record {self.n}: {self.message}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A new epoch was asked for."""

    n: int
    epoch: int
    channel: str
    overlap: str
    """``beside``: it runs beside the one before it until the fence."""
    boundary: float | None
    """It has all rows of the windows behind this one."""
    window: float | None = None
    """Length of its windows in seconds; None: that is not said."""
    queries: tuple[str, ...] = ()
    """Those that it has, as far as that is said."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Windows behind it are another epoch's."""

    n: int
    old: int
    new: int
    upto: float
    by_query: Mapping[str, float]
    """Where queries were not equally far: query -> its own."""

    def find_bound(self, query: str) -> float:
        """The last window of this query that is the old epoch's."""
        return self.by_query.get(query, self.upto)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one execution of a query came to; windows by their ends."""

    n: int
    epoch: int
    query: str
    batch: int
    first: float | None
    last: float | None
    rows: int
    kept: int
    watermark: float
    files: tuple[str, ...]

    def __str__(self) -> str:
        return f"batch {self.batch} of {self.query!r}, epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class Log:
    """Records in order of their numbers, each kind by itself."""

    compacted: int
    """Records up to this number are from a snapshot, which leaves out what nobody needs any more; 0: there is none."""
    times: tuple[tuple[int, float], ...]
    """(number, seconds since 1970) of each record."""
    epochs: Mapping[int, Asked]
    """As they were first asked for."""
    marks: Mapping[tuple[MarkKind, int], tuple[int, ...]]
    """(kind, epoch) -> numbers of those records."""
    fences: tuple[Fence, ...]
    batches: tuple[Batch, ...]

    def find_first(self, kind: MarkKind, epoch: int) -> float:
        """Number of the first such record of the epoch; infinite if there is none."""
        return self.marks.get((kind, epoch), (inf,))[0]

    def find_last(self, kind: MarkKind, epoch: int, before: float) -> int:
        """Number of the last such record that comes before a number; 0 if there is none."""
        return max((n for n in self.marks.get((kind, epoch), ()) if n < before), default=0)

    def find_fence_into(self, epoch: int, before: float = inf) -> Fence | None:
        return next((each for each in self.fences if each.new == epoch and each.n < before), None)

    def find_fence_out_of(self, epoch: int, before: float = inf) -> Fence | None:
        return next((each for each in self.fences if each.old == epoch and each.n < before), None)

    def is_forgotten(self, epoch: int) -> bool:
        """Whether it was long ago, so that a snapshot has left it out."""
        return bool(self.compacted) and epoch < min(self.epochs, default=epoch + 1)
