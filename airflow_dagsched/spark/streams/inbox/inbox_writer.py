"""A batch of routed rows, written aside in one pass that also counts them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.session.observed import read_metrics
from airflow_dagsched.spark.streams.drafts import NEW
from airflow_dagsched.spark.streams.inbox.route_rows import (
    EPOCH,
    REASONS,
    WHY,
    list_epochs,
    list_measures,
    list_spans,
    route_rows,
)
from airflow_dagsched.spark.streams.sources import MICROS
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
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """What a batch has."""

    newest: float | None
    """Newest event time of rows that an epoch has, in seconds since 1970; None: there are none."""
    rows: Mapping[str, int]
    """Epoch -> rows."""
    dead: Mapping[str, int]
    """Why -> rows that no epoch has."""


class InboxWriter:
    """Writes batches of one source.

    :param max_ahead_s: by which an event time may be ahead of the clock.
    """

    def __init__(self, session: SparkSession, store: Store, event_time: str, max_ahead_s: float) -> None:
        self._session = session
        self._store = store
        self._event_time = event_time
        self._max_ahead_s = max_ahead_s

    def write(self, df: DataFrame, folder: str, route: Route, late_before: float) -> Counts:
        """Write the rows into a new draft, each where its rule says.

        :param late_before: see ``list_spans``.
        """
        seen = Observation()
        measures = list_measures(self._event_time, route)
        routed = route_rows(df, self._event_time, list_spans(route, late_before, time.time() + self._max_ahead_s))
        rows = join_path(folder, NEW, ROWS_FOLDER)
        routed.observe(seen, *measures).write.options(**_OPTIONS).partitionBy(EPOCH).parquet(rows)
        metrics = read_metrics(seen) or self._measure(rows, df, measures)
        dead = join_path(rows, f"{EPOCH}={DEAD}")
        # Nobody else looks into a draft that has no entry.
        if self._store.exists(dead):
            self._store.rename(dead, join_path(folder, NEW, DEAD_FOLDER))
        return _read_counts(metrics, route)

    def execute(self, df: DataFrame) -> None:
        """Run the batch, and keep nothing of it."""
        df.write.format("noop").mode("append").save()

    def _measure(self, folder: str, df: DataFrame, measures: list[Any]) -> dict[str, Any]:
        """What was not seen while it was written."""
        schema = StructType([*df.schema.fields, StructField(WHY, StringType()), StructField(EPOCH, IntegerType())])
        found = self._session.read.schema(schema).parquet(folder).agg(*measures).first()
        return found.asDict() if found else {}


def _read_counts(metrics: Mapping[str, Any], route: Route) -> Counts:
    newest = metrics["newest"]
    rows = {str(epoch): int(metrics[f"epoch {epoch}"]) for epoch in list_epochs(route)}
    dead = {reason: int(metrics[reason]) for reason in REASONS if metrics[reason]}
    return Counts(None if newest is None else newest / MICROS, rows, dead)
