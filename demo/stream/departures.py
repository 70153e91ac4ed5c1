"""Flights as the reports of an airport: a row when a flight leaves, or half an hour after its time at the latest.

::

    flights of a day ── in the order of their reports ── files of half an hour each ── <folder>/000000.parquet, ...
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet

MINUTE = 60_000_000
"""Times are microseconds since 1970."""
HALF_HOUR = 30 * MINUTE
HOUR = 2 * HALF_HOUR
LONGEST_WAIT_MIN = 29
"""Shorter than the stream's lateness: each flight is reported in time for its window."""
SCHEMA = pa.schema([("scheduled", pa.timestamp("us", tz="UTC")), ("origin", pa.string()), ("dep_delay", pa.int64())])


class Departure(NamedTuple):
    """One flight."""

    reported: int
    scheduled: int
    origin: str
    dep_delay: int | None
    """Minutes; None: it never left."""


def read_departures(flights: Path, day: date) -> list[Departure]:
    """Flights of a day in the order of their reports.

    :param flights: the table of all days, as ``demo.flights_data`` makes it.
    """
    names = ["time_hour", "minute", "origin", "dep_delay"]
    rows = pyarrow.dataset.dataset(flights / f"day={day}", format="parquet").to_table(columns=names)
    scheduled = pc.add(pc.cast(rows["time_hour"], pa.int64()), pc.multiply(rows["minute"], MINUTE)).to_pylist()
    columns = zip(scheduled, rows["origin"].to_pylist(), rows["dep_delay"].to_pylist(), strict=True)
    departures = (Departure(at + _wait_min(delay) * MINUTE, at, origin, delay) for at, origin, delay in columns)
    return sorted(departures, key=lambda each: each.reported)


def _wait_min(delay: int | None) -> int:
    return LONGEST_WAIT_MIN if delay is None else min(max(delay, 0), LONGEST_WAIT_MIN)


def list_files(flights: Path, first: date, days: int) -> Iterator[list[Departure]]:
    """Reports of half an hour each, as long as there are some."""
    for day in range(days):
        rows = read_departures(flights, first + timedelta(days=day))
        for at in sorted({each.reported // HALF_HOUR for each in rows}):
            yield [each for each in rows if each.reported // HALF_HOUR == at]


def add_file(folder: Path, number: int, rows: Sequence[Departure]) -> None:
    """Put a file where the stream reads, whole or not at all, later by its time than those before it."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".draft-{number}"
    kept = [{"scheduled": each.scheduled, "origin": each.origin, "dep_delay": each.dep_delay} for each in rows]
    pyarrow.parquet.write_table(pa.Table.from_pylist(kept, schema=SCHEMA), draft)
    # Spark reads files in the order of these times, which are whole seconds in some file systems.
    os.utime(draft, (rows[-1].reported // 1_000_000,) * 2)
    draft.rename(folder / f"{number:06}.parquet")
