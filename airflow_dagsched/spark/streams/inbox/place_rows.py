"""Rows with the place of what becomes of them among the spans of a rule, and what is counted of them."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, count, count_if, get, lit, unix_micros, when
from pyspark.sql.functions import max as greatest
from pyspark.sql.functions import min as least

from airflow_dagsched.spark.session.observed import quote_name
from airflow_dagsched.spark.streams.sources import MICROS
from airflow_dagsched.switch.inbox.entries import DEAD
from airflow_dagsched.switch.inbox.routing import Route

EPOCH, WHY = "dagsched_epoch", "dagsched_why"
"""Columns: the epoch that has the row; why none has it."""
_PLACE = "dagsched_place"
"""Column: of the row's span, behind that of rows without an event time, which is 0."""
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


def place_rows(rows: DataFrame, event_time: str, spans: Sequence[Span]) -> DataFrame:
    """``rows`` with the place of each, which ``name_places`` and ``list_measures`` go by."""
    micros = unix_micros(col(quote_name(event_time)))
    begins = lit([each.begin for each in spans[1:]]).cast("array<bigint>")
    # Looked up, at a place that is not known before there is a row, though it is always the same: times of a batch
    # would else be in the code that Spark makes of all this, and that be compiled anew for each batch.
    first = micros.bitwiseAND(lit(0)).cast("int")
    is_passed = [micros >= get(begins, first + lit(place)) for place in range(len(spans) - 1)]
    passed = reduce(operator.add, [each.cast("int") for each in is_passed])
    return rows.withColumn(_PLACE, coalesce(passed + lit(1), lit(0)))


def name_places(placed: DataFrame, spans: Sequence[Span]) -> DataFrame:
    """The rows with ``EPOCH`` and ``WHY`` instead."""
    epochs = lit([DEAD, *(each.epoch for each in spans)])
    reasons = lit([REASONS[0], *(each.why for each in spans)]).cast("array<string>")
    return placed.withColumns({WHY: get(reasons, col(_PLACE)), EPOCH: get(epochs, col(_PLACE))}).drop(_PLACE)


def _to_micros(moment: float) -> int:
    return round(moment * MICROS)


@dataclass(frozen=True, slots=True)
class Counts:
    """What a batch has."""

    newest: float | None
    """Newest event time of rows that an epoch has, in seconds since 1970; None: there are none."""
    rows: Mapping[str, int]
    """Epoch -> rows."""
    dead: Mapping[str, int]
    """Why -> rows that no epoch has."""


def list_measures(event_time: str, spans: Sequence[Span]) -> list[Column]:
    """What ``make_counts`` needs of placed rows: the newest event time in microseconds since 1970, rows by place."""
    kept = [place for place, span in enumerate(spans, 1) if span.why is None]
    newest = greatest(when(col(_PLACE).isin(kept), unix_micros(col(quote_name(event_time)))))
    by_place = [count_if(col(_PLACE) == lit(place)).alias(f"{place}") for place in range(len(spans) + 1)]
    return [newest.alias("newest"), *by_place]


def make_counts(metrics: Mapping[str, Any], route: Route, spans: Sequence[Span]) -> Counts:
    """``metrics``: of ``list_measures``."""
    newest = metrics["newest"]
    rows = dict.fromkeys(map(str, list_epochs(route)), 0)
    dead = dict.fromkeys(REASONS, 0) | {REASONS[0]: int(metrics["0"])}
    for place, span in enumerate(spans, 1):
        counts, key = (rows, str(span.epoch)) if span.why is None else (dead, span.why)
        counts[key] += int(metrics[f"{place}"])
    return Counts(None if newest is None else newest / MICROS, rows, {why: n for why, n in dead.items() if n})


def list_extremes(event_time: str) -> list[Column]:
    """What ``count_whole`` needs of rows: the oldest and newest event times in microseconds since 1970, all, and
    those with a time.
    """
    micros = unix_micros(col(quote_name(event_time)))
    timed, rows = count(micros), count(lit(1))
    return [least(micros).alias("oldest"), greatest(micros).alias("newest"), timed.alias("timed"), rows.alias("rows")]


def count_whole(metrics: Mapping[str, Any], epoch: int, spans: Sequence[Span]) -> Counts | None:
    """What a batch has if the epoch, the only one there is, has all of its rows; None: some no epoch has.

    :param metrics: of ``list_extremes``.
    """
    oldest, newest, rows = metrics["oldest"], metrics["newest"], int(metrics["rows"])
    if rows == 0:
        return Counts(None, {str(epoch): 0}, {})
    if metrics["timed"] < rows or any(_find_span(each, spans).why for each in (oldest, newest)):
        return None
    # What no epoch has is older, or newer, than all that one has.
    return Counts(newest / MICROS, {str(epoch): rows}, {})


def _find_span(micros: int, spans: Sequence[Span]) -> Span:
    return spans[bisect_right([each.begin for each in spans[1:]], micros)]


def list_epochs(route: Route) -> tuple[int, ...]:
    """Epochs that rows may be for."""
    return (route.last,) if route.before is None else (route.before[1], route.last)
