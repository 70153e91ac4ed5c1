"""A step of ten columns, one of which tells how often it is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.spark.running import Ran


def make_wide(spark: SparkSession) -> tuple[Callable[..., DataFrame], Any]:
    """The step ``wide``, and what counts the rows that its column ``costly`` was computed for."""
    seen = spark.sparkContext.accumulator(0)

    def count(x: int) -> int:
        seen.add(1)
        return x

    def wide(spark: SparkSession) -> DataFrame:
        costly = sf.udf(count, "long").asNondeterministic()
        plain = spark.range(20).selectExpr("id", *(f"id * {at} as c{at}" for at in range(8)))
        return plain.withColumn("costly", costly("id"))

    return wide, seen


def rows(spark: SparkSession, ran: Ran, step: str) -> list[Any]:
    """What the step stored."""
    return sorted(spark.read.parquet(ran.done[step].datasets[""]).collect())
