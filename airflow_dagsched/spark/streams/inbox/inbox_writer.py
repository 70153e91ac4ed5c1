"""A batch of routed rows, written aside in one pass that also counts them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, DataFrameWriter, Observation, SparkSession

from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.session.observed import measure_rows, read_metrics
from airflow_dagsched.spark.streams.drafts import NEW
from airflow_dagsched.spark.streams.inbox.place_rows import (
    EPOCH,
    Counts,
    Span,
    count_whole,
    list_extremes,
    list_measures,
    list_spans,
    make_counts,
    name_places,
    place_rows,
)
from airflow_dagsched.spark.streams.write_into_new import write_into_new
from airflow_dagsched.switch.inbox.entries import DEAD
from airflow_dagsched.switch.inbox.routing import Route

ROWS_FOLDER, DEAD_FOLDER = "rows", "dead"
"""Of an inbox, and of a draft: what graphs read, and what none does."""
WRITING: Mapping[str, str] = {
    # Spark would else sort the rows by their epoch first; of a batch there are no more than these.
    "spark.sql.maxConcurrentOutputFileWriters": "4",
    # As Spark has them, with any time it can have: cheaper both ways than what it writes for old readers, and files
    # say what times are in them.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Settings of the session that the queries start in whose batches are written."""
_OPTIONS: Mapping[str, str] = {
    # Each row is written once, read once and soon removed.
    "compression": "lz4_raw",
}


class InboxWriter:
    """Writes batches of one source.

    :param max_ahead_s: by which an event time may be ahead of the clock.
    """

    def __init__(self, session: SparkSession, store: Store, event_time: str, max_ahead_s: float) -> None:
        self._session = session
        self._store = store
        self._event_time = event_time
        self._max_ahead_s = max_ahead_s
        self._has_dead_rows = False
        """Once there are any there will be more."""

    def write(self, df: DataFrame, folder: str, route: Route, late_before: float) -> Counts:
        """Write the rows into a new draft, each where its rule says.

        :param late_before: see ``list_spans``.
        """
        spans = list_spans(route, late_before, time.time() + self._max_ahead_s)
        rows = join_path(folder, NEW, ROWS_FOLDER)
        if route.before is None and not self._has_dead_rows:
            # To divide rows takes processor time, and mostly all are of one graph.
            if counts := self._write_whole(df, join_path(rows, f"{EPOCH}={route.last}"), route.last, spans):
                return counts
            self._has_dead_rows = True
            self._store.delete(rows)
        counts = self._write_divided(df, rows, route, spans)
        dead = join_path(rows, f"{EPOCH}={DEAD}")
        # Nobody else looks into a draft that has no entry.
        if self._store.exists(dead):
            self._store.rename(dead, join_path(folder, NEW, DEAD_FOLDER))
        return counts

    def execute(self, df: DataFrame) -> None:
        """Run the batch, and keep nothing of it."""
        df.write.format("noop").mode("append").save()

    def _write_whole(self, df: DataFrame, folder: str, epoch: int, spans: Sequence[Span]) -> Counts | None:
        seen, measures = Observation(), list_extremes(self._event_time)
        self._open(df.observe(seen, *measures), folder).parquet(folder)
        return count_whole(read_metrics(seen) or measure_rows(self._read(folder, df), measures), epoch, spans)

    def _write_divided(self, df: DataFrame, folder: str, route: Route, spans: Sequence[Span]) -> Counts:
        seen, measures = Observation(), list_measures(self._event_time, spans)
        placed = place_rows(df, self._event_time, spans).observe(seen, *measures)
        self._open(name_places(placed, spans), folder).partitionBy(EPOCH).parquet(folder)
        metrics = read_metrics(seen)
        if not metrics:
            metrics = measure_rows(place_rows(self._read(folder, df), self._event_time, spans), measures)
        return make_counts(metrics, route, spans)

    def _open(self, rows: DataFrame, folder: str) -> DataFrameWriter:
        return write_into_new(self._store, rows, folder).options(**_OPTIONS)

    def _read(self, folder: str, df: DataFrame) -> DataFrame:
        """Rows as they were written, to measure what was not seen meanwhile."""
        return self._session.read.schema(df.schema).parquet(folder)
