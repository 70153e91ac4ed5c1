"""Calls of a stream's steps over rows that are there, as its driver would make them over rows that come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, current_timestamp, lit

from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.launch.streams.rehearsal import Rehearsal, hand_in
from airflow_dagsched.spark.session.observed import quote_name
from airflow_dagsched.spark.steps.source_rows import check_source_rows


def hand_in_rows(stream: Rehearsal, calls: Mapping[str, Call], spark: SparkSession) -> dict[str, Call]:
    """``calls`` with the rows of sources, and the keys of sinks."""
    filled = {name: hand_in(calls[name], "key", key) for name, key in stream.keys.items()}
    for source in stream.sources:
        rows = _make_rows(stream.rows[source.name], source, spark)
        call = hand_in(calls[source.name], "rows", rows)
        assert call.function is not None, "a source is a function"
        filled[source.name] = replace(call, function=_take_timely(call.function, source, stream.max_ahead_s))
    return {**calls, **filled}


def _make_rows(value: Any, source: SourceSpec, spark: SparkSession) -> Any:
    """By the declared schema, which files are read by; a DataFrame as it is."""
    if isinstance(value, DataFrame):
        return value
    return spark.createDataFrame(value, source.schema) if source.schema else spark.createDataFrame(value)


def _take_timely(function: Callable[..., Any], source: SourceSpec, max_ahead_s: float) -> Callable[..., Any]:
    """``function`` without the rows of its answer that a stream leaves out."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        rows = check_source_rows(function(*args, **kwargs), source.event_time)
        latest = current_timestamp() + lit(timedelta(seconds=max_ahead_s))
        return rows.where(col(quote_name(source.event_time)) <= latest)

    return call
