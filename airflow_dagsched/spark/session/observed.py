"""Rows of a DataFrame, counted while it is written (no pass of their own), and names as Spark takes them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql.functions import col, collect_set, expr, struct, to_json

LATE_S = 30.0
"""Spark reports an observation after the write has returned, and drops it if its listeners are far behind."""

PARTITIONS = "partitions"
"""Metric: the different partitions, each a dict of column and value."""

NO_GLOB = "__globPaths__"
"""Option of Spark's file readers: "false" takes a path as it is, with ``[`` or ``{`` in it."""


def observe_rows(df: DataFrame, *partition_by: str) -> tuple[DataFrame, Observation]:
    """``df`` with its rows, and the different values of ``partition_by`` as strings, counted at its root."""
    observation = Observation()
    # As text: ``lit`` loads pandas, to see whether what it gets is a number of numpy's.
    metrics = [expr("count(1) as rows")]
    if partition_by:
        columns = [col(quote_name(name)).cast("string").alias(name) for name in partition_by]
        # As JSON: in 4.0 a list of structs comes back as an object of the JVM.
        metrics.append(to_json(collect_set(struct(*columns)), {"ignoreNullFields": "false"}).alias(PARTITIONS))
    return df.observe(observation, *metrics), observation


def read_metrics(observation: Observation) -> dict[str, Any]:
    """What was observed, once the action on the DataFrame has returned; empty if Spark does not say."""
    future: Any = observation._jo.future()  # type: ignore[union-attr]  # ``get`` would wait for ever
    limit = time.monotonic() + LATE_S
    while not future.isCompleted():
        if time.monotonic() > limit:
            return {}
        # Mostly it is there at once; the listeners are some milliseconds behind at the end of a job.
        time.sleep(0.005)
    metrics = dict(observation.get)
    return {**metrics, PARTITIONS: json.loads(metrics[PARTITIONS])} if PARTITIONS in metrics else metrics


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows that are counted as others are made of them."""

    df: DataFrame
    observation: Observation

    def read(self) -> int | None:
        """How many there were, once the action has returned; None if Spark does not say."""
        rows = read_metrics(self.observation).get("rows")
        return None if rows is None else int(rows)


def count_all(df: DataFrame) -> Counted:
    """``df``, all of whose rows are made and counted: what is asked of them above is not asked below."""
    return Counted(*observe_rows(df))


def measure_rows(rows: DataFrame, measures: Iterable[Column]) -> dict[str, Any]:
    """The same of rows that are there, by a pass of its own."""
    found = rows.agg(*measures).first()
    return found.asDict() if found else {}


def quote_name(name: str) -> str:
    """``name`` as a column's name in an expression, whatever characters are in it."""
    return "`" + name.replace("`", "``") + "`"
