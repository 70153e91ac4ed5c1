"""Many rows of a stream, made and summed by columns; what they are is said by ``tests/streams/rows``.

A file says of each row whether it is *stale*, in a column that the stream does not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.streams.rows import BEGIN, SCHEMA, SECOND, Sums

STALE = "is_stale"
WITH_STALE = SCHEMA.append(pa.field(STALE, pa.bool_()))
FILTERED = "user 0"


class StagedFile(NamedTuple):
    """A file that the stream does not see yet."""

    path: Path
    newest: int
    """Event time of its newest row, in microseconds since 1970."""


@dataclass(frozen=True)
class Bulk:
    """How rows are drawn: the same ones each time. In the order of files each is at most the lateness behind those
    before it, but for stale ones.
    """

    rows: int = 5_000_000
    files: int = 100
    span_s: int = 20
    """Event time from file to file."""
    window_s: int = 10
    lateness_s: int = 5
    users: int = 200
    stale: float = 0.02
    """Part of the rows that come too late."""
    apart: int = 6
    """Files after which a window that they closed is closed for every graph, twice as many as a batch has."""
    seed: int = 1

    def stage(self, folder: Path) -> Iterator[StagedFile]:
        """Write the files."""
        folder.mkdir(parents=True)
        chance, newest = np.random.default_rng(self.seed), list[int]()
        for number in range(self.files):
            table = self._draw(chance, number, newest)
            newest.append(pc.max(table["ts"].cast(pa.int64())).as_py())
            path = folder / f"{number:06}.parquet"
            pq.write_table(table, path)
            # Spark reads files in the order of these times, and in any order those of equal times.
            os.utime(path, (BEGIN // SECOND + number,) * 2)
            yield StagedFile(path, newest[-1])

    def _draw(self, chance: np.random.Generator, number: int, newest: Sequence[int]) -> pa.Table:
        count, window = self.rows // self.files, self.window_s * SECOND
        at = BEGIN + ((number + np.arange(count) / count) * self.span_s * SECOND).astype("int64")
        at -= chance.integers(0, self.lateness_s * SECOND, count, endpoint=True)
        is_stale = np.zeros(count, bool)
        if known := newest[: max(0, number - self.apart + 1)]:
            is_stale = chance.random(count) < self.stale
            closed = (max(known) - self.lateness_s * SECOND) // window * window
            at = np.where(is_stale, closed - chance.integers(1, 3 * window, count), at)
        columns = [
            pa.array(at, SCHEMA.field("ts").type),
            pa.array(np.char.add("user ", chance.integers(0, self.users, count).astype(str))),
            pa.array(chance.integers(-5, 100, count)),
            _make_decimals(chance.integers(-100_000, 100_000, count)),
            pa.array(is_stale),
        ]
        return pa.table(columns, schema=WITH_STALE)


def _make_decimals(cents: np.ndarray) -> pa.Array:
    whole = pa.array(cents).cast(pa.decimal128(19, 0))
    return pc.multiply(whole, pa.scalar(Decimal("0.01"))).cast(SCHEMA.field("amount").type)


@dataclass(frozen=True)
class Owned:
    """Windows of one epoch, and what it makes of them. Windows by their ends, in seconds since 1970."""

    after: float
    upto: float
    factor: int = 1
    """By which it multiplies clicks."""
    without: str = ""
    """User whose rows it leaves out."""


def sum_files(files: Iterable[Path], window_s: int, owned: Sequence[Owned]) -> dict[tuple[int, str], Sums]:
    """The batch computation: all rows but stale ones, each by the definition of the epoch that owns its window."""
    rows = pa.concat_tables([_read(file, window_s) for file in files])
    found = dict[tuple[int, str], Sums]()
    for each in owned:
        after, upto = (round(moment * SECOND) for moment in (each.after, each.upto))
        is_its = pc.and_(pc.greater(rows["end"], after), pc.less_equal(rows["end"], upto))
        mine = rows.filter(pc.and_(is_its, pc.not_equal(rows["user"], each.without)))
        sums = mine.group_by(["end", "user"]).aggregate([("clicks", "count"), ("clicks", "sum"), ("amount", "sum")])
        names = ("end", "user", "clicks_count", "clicks_sum", "amount_sum")
        for end, user, count, clicks, amount in zip(*(sums[name].to_pylist() for name in names), strict=True):
            found[end, user] = Sums(count, clicks * each.factor, amount)
    return found


def _read(file: Path, window_s: int) -> pa.Table:
    """Rows that are not stale, with the end of their window in microseconds since 1970."""
    rows = pq.read_table(file)
    rows = rows.filter(pc.invert(rows[STALE]))
    window = window_s * SECOND
    ends = pc.multiply(pc.add(pc.divide(rows["ts"].cast(pa.int64()), window), 1), window)
    return rows.select(["user", "clicks", "amount"]).append_column("end", ends)


def count_stale(files: Iterable[Path]) -> int:
    """Rows that came too late for any graph."""
    return sum(pc.sum(pq.read_table(file, columns=[STALE])[STALE]).as_py() or 0 for file in files)
