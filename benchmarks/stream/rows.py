"""Files of a stream: so many rows each, so many seconds of event time each, in order but for a few seconds."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.streams.rows import BEGIN, SCHEMA, SECOND

LATENESS_S = 5.0
WINDOW_S = 10.0
USERS = 1000


class Source:
    """A folder that a stream reads.

    :param rows: of a file.
    :param seconds: of event time in a file.
    :param begin: of the first file, in seconds of event time behind the first of others: a query that comes to the
        watermarks of another finds classes that Spark has compiled for that one.
    """

    def __init__(self, folder: Path, rows: int, seconds: float, begin: float = 0.0) -> None:
        self.folder = folder
        self.files = 0
        self._begin = BEGIN + round(begin) * SECOND
        self._rows, self._seconds = rows, seconds
        self._chance = np.random.default_rng(1)
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def watermark(self) -> float:
        """That a query has when it has read all files, in seconds since 1970, or a few milliseconds less."""
        return self._begin / SECOND + self.files * self._seconds - 2 * LATENESS_S

    def add(self) -> None:
        """Add the next file, whole or not at all, later by its time than those before it."""
        at = self._begin + (self.files + np.arange(self._rows) / self._rows) * self._seconds * SECOND
        behind = self._chance.random(self._rows) * LATENESS_S * SECOND
        columns = [
            pa.array((at - behind).astype("int64"), SCHEMA.field("ts").type),
            pa.array(np.char.add("user ", self._chance.integers(0, USERS, self._rows).astype(str))),
            pa.array(self._chance.integers(0, 100, self._rows)),
            pa.array(self._chance.integers(0, 100_000, self._rows, "int32")).cast(SCHEMA.field("amount").type),
        ]
        draft = self.folder / f".draft-{self.files}"
        pq.write_table(pa.table(columns, schema=SCHEMA), draft)
        os.utime(draft, (BEGIN // SECOND + self.files,) * 2)
        draft.rename(self.folder / f"{self.files:06}.parquet")
        self.files += 1
