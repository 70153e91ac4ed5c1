"""Rows with the epoch that each is for, in columns of their own."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, count_if, current_timestamp, lit, unix_micros, when
from pyspark.sql.functions import max as greatest

from airflow_dagsched.spark.session.observed import quote_name
from airflow_dagsched.spark.streams.sources import MICROS
from airflow_dagsched.switch.inbox.entries import DEAD
from airflow_dagsched.switch.inbox.routing import Route

EPOCH, WHY = "dagsched_epoch", "dagsched_why"
"""Columns: the epoch that has the row; why none has it."""
REASONS = ("no time", "ahead", "late", "passed")
"""It has no event time; that is too far ahead of the clock; it is too old for any graph; its windows are emitted."""


def route_rows(rows: DataFrame, event_time: str, route: Route, late_before: float, max_ahead_s: float) -> DataFrame:
    """``rows`` with ``EPOCH`` and ``WHY``.

    :param late_before: rows before this time, in seconds since 1970, are too late for every graph.
    :param max_ahead_s: by which an event time may be ahead of the clock.
    """
    moment = col(quote_name(event_time))
    micros = unix_micros(moment)
    latest = current_timestamp() + lit(timedelta(seconds=max_ahead_s))
    is_so = (moment.isNull(), moment > latest, _is_before(micros, late_before), _is_before(micros, route.dead_before))
    why = lit(None).cast("string")
    # The first that holds is the reason.
    for reason, condition in reversed(tuple(zip(REASONS, is_so, strict=True))):
        why = when(condition, lit(reason)).otherwise(why)
    epoch = lit(route.last)
    if route.before is not None:
        epoch = when(_is_before(micros, route.before[0]), lit(route.before[1])).otherwise(epoch)
    named = rows.withColumn(WHY, why)
    return named.withColumn(EPOCH, when(col(WHY).isNotNull(), lit(DEAD)).otherwise(epoch))


def _is_before(micros: Column, moment: float) -> Column:
    return micros < lit(round(moment * MICROS))


def list_measures(event_time: str, route: Route) -> list[Column]:
    """What is counted of routed rows: ``newest``, in microseconds since 1970, rows by epoch, and by reason."""
    newest = greatest(when(col(WHY).isNull(), unix_micros(col(quote_name(event_time)))))
    return [
        newest.alias("newest"),
        *(count_if(col(EPOCH) == lit(epoch)).alias(f"epoch {epoch}") for epoch in list_epochs(route)),
        *(count_if(col(WHY) == lit(reason)).alias(reason) for reason in REASONS),
    ]


def list_epochs(route: Route) -> tuple[int, ...]:
    """Epochs that rows may be for."""
    return (route.last,) if route.before is None else (route.before[1], route.last)
