"""What Spark tells of a query's batches, added up for the driver's sign of life."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from airflow_dagsched.spark.streams.sink import LeftOut
from airflow_dagsched.spark.streams.sources import MICROS, name_read, name_taken
from airflow_dagsched.switch.story import EpochStory

NOTHING = LeftOut()


class Tally:
    """Of one query since it was started. Looked at by two threads: as a batch begins, and once a second.

    :param before: what was left out before.
    """

    def __init__(self, before: LeftOut = NOTHING) -> None:
        self.batch = -1
        """The last one that Spark has told of; -1: none."""
        self.left = before
        """In the epoch until that batch."""
        self.newest: dict[str, float] = {}
        """Source -> newest event time seen, in seconds since 1970."""
        self.rows_s: float | None = None
        self.batch_s: float | None = None
        self.state_rows = 0
        self.state_bytes = 0
        self.watermark: float | None = None
        self._guard = threading.Lock()

    def add(self, progress: Mapping[str, Any]) -> None:
        """Add what is told of one batch, once."""
        with self._guard:
            if progress["batchId"] > self.batch:
                self.batch = progress["batchId"]
                self._add_batch(progress)

    def _add_batch(self, progress: Mapping[str, Any]) -> None:
        states = progress["stateOperators"]
        late = sum(each["numRowsDroppedByWatermark"] for each in states)
        self.left = replace(self.left, late=self.left.late + late)
        self.state_rows = sum(each["numRowsTotal"] for each in states)
        self.state_bytes = sum(each["memoryUsedBytes"] for each in states)
        self.rows_s = progress["processedRowsPerSecond"]
        self.batch_s = progress["durationMs"].get("triggerExecution", 0) / 1000
        watermark = progress["eventTime"].get("watermark")
        self.watermark = datetime.fromisoformat(watermark).timestamp() if watermark else None
        self._add_observed(progress["observedMetrics"])

    def _add_observed(self, observed: Mapping[str, Any]) -> None:
        read, taken = name_read(""), name_taken("")
        for name, row in observed.items():
            if name.startswith(taken):
                ahead, nulls = self.left.ahead + (row["ahead"] or 0), self.left.nulls + (row["nulls"] or 0)
                self.left = replace(self.left, ahead=ahead, nulls=nulls)
            elif name.startswith(read) and row["newest"] is not None:
                source = name.removeprefix(read)
                self.newest[source] = max(row["newest"] / MICROS, self.newest.get(source, float("-inf")))


def merge_newest(tallies: Iterable[Tally]) -> dict[str, float | None]:
    """Source -> newest event time that any query has seen."""
    found: dict[str, float | None] = {}
    for tally in tallies:
        for source, moment in tally.newest.items():
            found[source] = max(moment, found.get(source) or moment)
    return found


def add_rates(tallies: Iterable[Tally]) -> float | None:
    """Rows in a second, of all queries that say; None: none does."""
    known = [each.rows_s for each in tallies if each.rows_s is not None]
    return sum(known) if known else None


def read_left(epoch: EpochStory, query: str) -> LeftOut:
    """What earlier drivers of the epoch have left out, as far as they could still say."""
    found = epoch.queries.get(query)
    return NOTHING if found is None else LeftOut(found.last.x_late, found.last.x_ahead, found.last.x_nulls)
