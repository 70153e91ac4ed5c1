"""Where a query reads, from the declared source to the rows that an author's steps get.

::

    reader, at the epoch's offsets -- author's function -- rows from .. on
        -- observe (what comes next takes out) -- rows up to max_ahead -- watermark -- observe (newest) -- steps

Spark moves filters of the author's steps below the watermark, as far down as it can: then the watermark would not see
the rows that this graph filters away and another one does not. The last observation stops them. ``rows_from`` is below
both, so that files are passed over by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import (
    aggregate,
    array,
    col,
    count,
    current_timestamp,
    lit,
    timestamp_micros,
    unix_micros,
    when,
)
from pyspark.sql.functions import max as greatest

from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.spark.session.observed import quote_name
from airflow_dagsched.spark.streams.start_options import choose_start_options

SETTINGS: Mapping[str, str] = {
    # Offsets and lists of files under the names of sources: they are another graph's to begin with.
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # State files of one driver are not another's, which may run beside it for a moment.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.minBatchesToRetain": "100",
    # A checkpoint is in a folder of this machine, where both ways come to the same rename. The other one starts a
    # process four times for each, to see whether a file is a link: without native libraries Hadoop can't tell.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # For as long as whoever ends a query waits for its thread, which may be in an author's function.
    "spark.sql.streaming.stopTimeout": "5s",
}
"""Of the session that an epoch's queries start in, on top of the flow's own."""
MICROS = 1_000_000
"""In a second: as finely as Spark tells times."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SourceStart:
    """Where an epoch begins to read a source."""

    offset: Any = None
    """As the source writes it; None: at its beginning."""
    rows_from: float | None = None
    """Rows of earlier event time, in seconds since 1970, are not for this epoch; None: all are."""


def open_source(
    session: SparkSession,
    spec: SourceSpec,
    settings: StreamSettings,
    parse: Callable[[DataFrame], DataFrame],
    start: SourceStart,
) -> DataFrame:
    """The rows that steps get of a source.

    :param parse: the author's function.
    """
    rows = read_source(session, spec, parse, start)
    if start.rows_from is not None:
        rows = rows.where(is_from(spec, start.rows_from))
    return watch_rows(_admit_rows(rows, spec, settings), spec, settings)


def read_source(
    session: SparkSession, spec: SourceSpec, parse: Callable[[DataFrame], DataFrame], start: SourceStart
) -> DataFrame:
    """What the author's function makes of the rows as they are read."""
    return parse(_read_raw(session, spec, start))


def is_from(spec: SourceSpec, moment: float) -> Column:
    """Whether a row's event time is this one, in seconds since 1970, or later."""
    # A plain comparison with a literal, never with a cast: by it whole row groups of files are passed over.
    return col(quote_name(spec.event_time)) >= lit(_EPOCH + timedelta(seconds=moment))


def _admit_rows(rows: DataFrame, spec: SourceSpec, settings: StreamSettings) -> DataFrame:
    """``rows`` without those that are too far ahead, and with a count of what is left out."""
    moment = col(quote_name(spec.event_time))
    rows = rows.observe(name_taken(spec.name), count(lit(1)).alias("rows"), count(moment).alias("timed"))
    # One absurd event time would move the watermark, and with it the boundary of a switch, behind all rows to come.
    return rows.where(_is_timely(moment, settings.max_ahead_s))


def watch_rows(rows: DataFrame, spec: SourceSpec, settings: StreamSettings) -> DataFrame:
    """``rows``, none of which is too far ahead, with their watermark; filters that come later do not get below it."""
    rows = rows.withWatermark(spec.event_time, f"{round(settings.lateness_s * 1000)} milliseconds")
    newest = greatest(unix_micros(col(quote_name(spec.event_time)))).alias("newest")
    return rows.observe(name_read(spec.name), newest, count(lit(1)).alias("rows"))


def _is_timely(moment: Column, max_ahead_s: float) -> Column:
    """Whether an event time is no further ahead of the clock; null where there is none."""
    # As whole numbers: a sum of a time and an interval goes by the calendar, for each row. One long ago may have no
    # earlier one, and is timely anyway.
    micros = unix_micros(moment)
    back = timestamp_micros(when(micros > lit(0), micros - lit(round(max_ahead_s * MICROS))).otherwise(micros))
    # By a function over nothing that Spark calls as it is: the time of a batch would else be in the code that it makes
    # of a filter, and that be compiled anew for each batch. What is done with the row's own time is in that code, which
    # is far faster than such a function.
    now = aggregate(array().cast("array<int>"), current_timestamp(), lambda latest, _: latest)
    return back <= now


def name_taken(source: str) -> str:
    """Name of the observation of what comes in: ``rows``, and how many of them are ``timed``."""
    return f"dagsched_taken_{source}"


def name_read(source: str) -> str:
    """Name of the observation of what is read: ``newest``, in microseconds since 1970, and ``rows``."""
    return f"dagsched_read_{source}"


def _read_raw(session: SparkSession, spec: SourceSpec, start: SourceStart) -> DataFrame:
    reader = session.readStream.name(spec.name).format(spec.format)
    if spec.schema is not None:
        reader = reader.schema(spec.schema)
    reader = reader.options(**{**spec.options, **choose_start_options(spec.format, start.offset)})
    return reader.load(spec.path) if spec.path is not None else reader.load()
