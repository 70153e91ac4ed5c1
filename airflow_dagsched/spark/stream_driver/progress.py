"""What Spark tells of a query's batches, added up for the driver's sign of life."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from airflow_dagsched.spark.streams.sink import RowCounts
from airflow_dagsched.spark.streams.sources import MICROS, name_read, name_taken
from airflow_dagsched.switch.records import Batch
from airflow_dagsched.switch.story import EpochStory

NOTHING = RowCounts()


class Tally:
    """Of one query since it was started. Looked at by two threads: as a batch begins, and once a second.

    :param before: what was counted before.
    """

    def __init__(self, before: RowCounts = NOTHING) -> None:
        self.batch = -1
        """The last one that Spark has told of; -1: none."""
        self.counts = before
        """Of the epoch, until that batch."""
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
        self.counts = replace(
            self.counts, late=self.counts.late + late, read=self.counts.read + progress["numInputRows"]
        )
        self.state_rows = sum(each["numRowsTotal"] for each in states)
        self.state_bytes = sum(each["memoryUsedBytes"] for each in states)
        self.rows_s = progress["processedRowsPerSecond"]
        self.batch_s = progress["durationMs"].get("triggerExecution", 0) / 1000
        watermark = progress["eventTime"].get("watermark")
        self.watermark = datetime.fromisoformat(watermark).timestamp() if watermark else None
        self._add_observed(progress["observedMetrics"])

    def _add_observed(self, observed: Mapping[str, Any]) -> None:
        read = name_read("")
        for name, row in observed.items():
            if name.startswith(read):
                self._add_source(name.removeprefix(read), row, observed.get(name_taken(name.removeprefix(read))))

    def _add_source(self, source: str, read: Mapping[str, Any], taken: Mapping[str, Any] | None) -> None:
        if taken is not None:
            nulls, ahead = taken["rows"] - taken["timed"], taken["timed"] - read["rows"]
            self.counts = replace(self.counts, ahead=self.counts.ahead + ahead, nulls=self.counts.nulls + nulls)
        if read["newest"] is not None:
            self.newest[source] = max(read["newest"] / MICROS, self.newest.get(source, float("-inf")))


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


def read_counts(epoch: EpochStory, query: str) -> RowCounts:
    """What earlier drivers of the epoch have counted, as far as they could still say."""
    found = epoch.queries.get(query)
    return NOTHING if found is None else _copy_counts(found.last)


def _copy_counts(batch: Batch) -> RowCounts:
    return RowCounts(batch.x_late, batch.x_ahead, batch.x_nulls, batch.x_read)
