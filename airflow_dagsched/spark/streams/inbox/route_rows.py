"""Rows with the epoch that each is for, in columns of their own."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, count_if, element_at, get, lit, unix_micros, when
from pyspark.sql.functions import max as greatest

from airflow_dagsched.spark.session.observed import quote_name
from airflow_dagsched.spark.streams.sources import MICROS
from airflow_dagsched.switch.inbox.entries import DEAD
from airflow_dagsched.switch.inbox.routing import Route

EPOCH, WHY = "dagsched_epoch", "dagsched_why"
"""Columns: the epoch that has the row; why none has it."""
_PLACE = "dagsched_place"
REASONS = ("no time", "ahead", "late", "passed")
"""It has no event time; that is too far ahead of the clock; it is too old for any graph; its windows are emitted."""


class Span(NamedTuple):
    """What becomes of rows from an event time on, up to the next span's."""

    begin: int
    """In microseconds since 1970."""
    epoch: int
    why: str | None
    """None: the epoch has them."""


def list_spans(route: Route, late_before: float, latest: float) -> tuple[Span, ...]:
    """All of them, the first of which has no begin.

    :param late_before: rows before this time, in seconds since 1970, are too late for every graph.
    :param latest: rows behind it are too far ahead of the clock.
    """
    late, dead, ahead = _to_micros(late_before), _to_micros(route.dead_before), _to_micros(latest) + 1
    until, before = (_to_micros(route.before[0]), route.before[1]) if route.before else (0, route.last)

    def judge(micros: int) -> Span:
        # The first that holds is the reason.
        is_so = zip(REASONS[1:], (micros >= ahead, micros < late, micros < dead), strict=True)
        why = next((reason for reason, holds in is_so if holds), None)
        return Span(micros, DEAD if why else before if micros < until else route.last, why)

    begins = sorted({late, dead, ahead, until})
    return tuple(judge(each) for each in (begins[0] - 1, *begins))


def route_rows(rows: DataFrame, event_time: str, spans: Sequence[Span]) -> DataFrame:
    """``rows`` with ``EPOCH`` and ``WHY``."""
    micros = unix_micros(col(quote_name(event_time)))
    begins = lit([each.begin for each in spans[1:]]).cast("array<bigint>")
    # Looked up, at a place that is not known before there is a row, though it is always the same: times of a batch
    # would else be in the code that Spark makes of all this, and that be compiled anew for each batch.
    first = micros.bitwiseAND(lit(0)).cast("int")
    is_passed = [micros >= get(begins, first + lit(place)) for place in range(len(spans) - 1)]
    passed = reduce(operator.add, [each.cast("int") for each in is_passed])
    named = rows.withColumn(_PLACE, coalesce(passed + lit(2), lit(1)))
    epochs = lit([DEAD, *(each.epoch for each in spans)])
    reasons = lit([REASONS[0], *(each.why for each in spans)]).cast("array<string>")
    found = {WHY: element_at(reasons, col(_PLACE)), EPOCH: element_at(epochs, col(_PLACE))}
    return named.withColumns(found).drop(_PLACE)


def _to_micros(moment: float) -> int:
    return round(moment * MICROS)


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
