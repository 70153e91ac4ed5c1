"""One step of the TPC-H pipeline, as it is submitted where each step is a program: its inputs read, its rows written.

Usage: spark-submit tpch_steps.py DATA OUT STEP
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from benchmarks.floors.tpch import (
    SQL,
    TABLES,
    VIEWS,
    ask,
    join_customers,
    join_sales,
    join_suppliers,
    q1,
    q6,
    q14,
)


def main(data: str, out: str, step: str) -> None:
    """Write the rows of ``step`` below ``out``, where those of the steps before it are."""
    spark = SparkSession.builder.getOrCreate()
    rows = spark.read.parquet(f"{data}/{step}") if step in TABLES else compute(step, spark, Stored(spark, out))
    rows.write.mode("overwrite").parquet(f"{out}/{step}")
    spark.stop()


class Stored(dict[str, DataFrame]):
    """What steps have stored, read when it is asked for."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        super().__init__()
        self._spark, self._folder = spark, folder

    def __missing__(self, name: str) -> DataFrame:
        return self._spark.read.parquet(f"{self._folder}/{name}")


def compute(step: str, spark: SparkSession, stored: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of ``step``, from what other steps have stored."""
    match step:
        case "sales":
            return join_sales(stored)
        case "customers":
            return join_customers(stored)
        case "suppliers":
            return join_suppliers(stored)
        case "q1":
            return q1(stored["lineitem"])
        case "q6":
            return q6(stored["lineitem"])
        case "q14":
            return q14(stored["sales"], stored["part"])
    named = re.findall(r"\w+", (SQL / f"{step}.sql").read_text())
    for name in (name for name in VIEWS if name in named):
        stored[name].createOrReplaceTempView(name)
    return ask(spark, step)


if __name__ == "__main__":
    main(*sys.argv[1:])
