"""Rows of a stream, the files they come in, and what the table must have of them, computed without Spark.

::

    event time    ──·─··──·─·─··─·──·───>      in the order of the files each row is at most ``lateness`` behind
                       ·        ·              those before it; but some are *stale*: their window was closed long ago
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
"""Event time of the first rows, in microseconds since 1970, as all times here."""
SCHEMA = pa.schema([
    ("ts", pa.timestamp("us", tz="UTC")), ("user", pa.string()), ("clicks", pa.int64()),
    ("amount", pa.decimal128(12, 2)),
])  # fmt: skip
DDL = "ts timestamp, user string, clicks bigint, amount decimal(12,2)"
"""The same for Spark."""


class Row(NamedTuple):
    """One row of the source."""

    at: int
    """Event time."""
    user: str
    clicks: int
    amount: Decimal
    is_stale: bool = False
    """Whether it comes when its window has long been closed: it must not count."""


class Sums(NamedTuple):
    """What the table has of a user in a window."""

    rows: int
    clicks: int
    amount: Decimal


Windows = Mapping[tuple[int, str], Sums]
"""(end of the window, user) -> sums."""


@dataclass(frozen=True)
class Rows:
    """How rows are drawn: the same ones each time."""

    per_file: int = 50
    step_s: float = 0.5
    """Of event time from row to row."""
    window_s: int = 10
    lateness_s: int = 5
    users: int = 3
    stale: float = 0.05
    """Part of the rows that come too late."""
    apart: int = 3
    """Files after which a window that was closed by them is closed for every graph, however it makes batches of them:
    Spark judges late rows by the watermark of the batch before.
    """
    seed: int = 1

    def draw(self, files: int) -> list[list[Row]]:
        """Rows of the first files, file by file."""
        chance = random.Random(self.seed)
        drawn: list[list[Row]] = []
        newest: list[int] = []
        for _ in range(files):
            closed = self._find_closed(newest)
            drawn.append(
                [self._draw_row(chance, len(drawn) * self.per_file + at, closed) for at in range(self.per_file)]
            )
            newest.append(max(each.at for each in drawn[-1]))
        return drawn

    def _find_closed(self, newest: Sequence[int]) -> int | None:
        """End of the newest window that is closed for good by the files before; None: none is.

        :param newest: event time of each file.
        """
        known = newest[: len(newest) - self.apart + 1] if len(newest) >= self.apart else ()
        window = self.window_s * SECOND
        return (max(known) - self.lateness_s * SECOND) // window * window if known else None

    def _draw_row(self, chance: random.Random, place: int, closed: int | None) -> Row:
        user, clicks = f"user {chance.randrange(self.users)}", chance.randint(-5, 100)
        amount = Decimal(chance.randint(-100_000, 100_000)).scaleb(-2)
        at = BEGIN + round(place * self.step_s * SECOND) - chance.randint(0, self.lateness_s * SECOND)
        if closed is None or chance.random() >= self.stale:
            return Row(at, user, clicks, amount)
        return Row(closed - chance.randint(1, 3 * self.window_s * SECOND), user, clicks, amount, is_stale=True)


def add_file(folder: Path, rows: Iterable[Row]) -> Path:
    """Add one file to a source, whole or not at all, later by its modification time than all before it."""
    folder.mkdir(parents=True, exist_ok=True)
    number = sum(1 for _ in folder.glob("*.parquet"))
    draft = folder / f".draft-{number}"
    columns = list(zip(*((each.at, each.user, each.clicks, each.amount) for each in rows), strict=True))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    pq.write_table(pa.table(arrays, schema=SCHEMA), draft)
    # Spark reads files in the order of these times, and in any order those of equal times.
    os.utime(draft, (BEGIN // SECOND + number,) * 2)
    return draft.rename(folder / f"{number:06}.parquet")


def sum_windows(
    rows: Iterable[Row],
    window_s: int,
    after: float = float("-inf"),
    upto: float = float("inf"),
    keep: Callable[[Row], bool] = lambda _: True,
) -> dict[tuple[int, str], Sums]:
    """The batch computation: all rows but stale ones.

    :param after: of windows that end later than this, in seconds since 1970.
    :param upto: and not later than this.
    :param keep: the filter of the graph that owns these windows.
    """
    window, found = window_s * SECOND, dict[tuple[int, str], Sums]()
    for row in rows:
        end = (row.at // window + 1) * window
        if not row.is_stale and after < end / SECOND <= upto and keep(row):
            rows_, clicks, amount = found.get((end, row.user), Sums(0, 0, Decimal(0)))
            found[end, row.user] = Sums(rows_ + 1, clicks + row.clicks, amount + row.amount)
    return found


def read_table(table: Path) -> Iterator[tuple[tuple[int, str], Sums]]:
    """The rows of a table with a window, user, rows, clicks and amount, as often as they are there."""
    files = [str(each) for each in sorted(table.rglob("*.parquet")) if not _is_hidden(each.relative_to(table))]
    if not files:
        return
    read = ds.dataset(files, format="parquet").to_table(columns=["window", "user", "rows", "clicks", "amount"])
    ends = pa.compute.struct_field(read["window"], "end").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    others = [read[name].to_pylist() for name in ("user", "rows", "clicks", "amount")]
    for end, user, rows, clicks, amount in zip(ends.to_pylist(), *others, strict=True):
        yield (end, user), Sums(rows, clicks, amount)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


@dataclass(frozen=True)
class Difference:
    """Between a table and what it must have; windows with their users."""

    lost: tuple[tuple[int, str], ...]
    twice: tuple[tuple[int, str], ...]
    wrong: tuple[tuple[int, str], ...]
    """There once, with other sums, or not to be there."""


NO_DIFFERENCE = Difference((), (), ())


def compare(expected: Windows, found: Iterable[tuple[tuple[int, str], Sums]]) -> Difference:
    """What is not as it must be."""
    listed = list(found)
    counts = Counter(window for window, _ in listed)
    return Difference(
        tuple(sorted(set(expected) - set(counts))),
        tuple(sorted(window for window, count in counts.items() if count > 1)),
        tuple(sorted({window for window, sums in listed if expected.get(window) != sums})),
    )
