"""One step of the flights pipeline, as it is submitted where each step is a program: its inputs read, its rows written.

Usage: spark-submit flights_steps.py DATA OUT FIRST_DAY END_DAY STEP
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks.floors.flights import means, sky, worst

Read = Callable[[str], DataFrame]
REPORTS = ("by_route", "by_carrier", "by_weather", "worst")


def main(data: str, out: str, first: str, end: str, step: str) -> None:
    """Write the rows of ``step`` below ``out``, where those of the steps before it are."""
    spark = SparkSession.builder.config("spark.sql.sources.partitionOverwriteMode", "dynamic").getOrCreate()
    rows = compute(
        step, lambda name: spark.read.parquet(f"{data}/{name}"), lambda name: spark.read.parquet(f"{out}/{name}")
    )
    if step == "departures":
        rows = rows.where((sf.col("day") >= first) & (sf.col("day") < end))
    writer = rows.write.mode("overwrite")
    (writer.partitionBy("day") if step in REPORTS else writer).parquet(f"{out}/{step}")
    spark.stop()


def compute(step: str, read: Read, stored: Read) -> DataFrame:
    """The rows of ``step``, from the input and from what other steps have stored."""
    steps: dict[str, Callable[[], DataFrame]] = {
        "departures": lambda: read("flights"),
        "clean": lambda: stored("departures").where("arr_delay is not null"),
        "weather": lambda: read(step).select("origin", "time_hour", "wind_speed", "precip", "visib"),
        "planes": lambda: read(step).selectExpr("tailnum", "2013 - year as age"),
        "airports": lambda: read(step).select("faa", "name"),
        "enriched": lambda: (
            stored("clean")
            .join(stored("weather"), ["origin", "time_hour"], "left")
            .join(stored("planes"), "tailnum", "left")
        ),
        "by_route": lambda: stored("enriched").groupBy("day", "origin", "dest").agg(*means()),
        "by_carrier": lambda: stored("enriched").groupBy("day", "carrier").agg(*means(), sf.avg("age").alias("age")),
        "by_weather": lambda: stored("enriched").groupBy("day", sky().alias("sky")).agg(*means()),
        "worst": lambda: worst(stored("by_route"), stored("airports")),
    }
    return steps[step]()


if __name__ == "__main__":
    main(*sys.argv[1:])
