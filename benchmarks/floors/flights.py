"""The flights pipeline as one person would write it in one PySpark program: no Airflow, no planner.

Usage: spark-submit flights.py DATA OUT FIRST_DAY END_DAY [rows|reports]

``rows`` and ``reports``: its two halves, where something else is to happen in between.
"""

from __future__ import annotations

import sys

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf


def main(data: str, out: str, first: str, end: str, half: str = "") -> None:
    """Write the four reports below ``out`` for the days from ``first`` to before ``end``."""
    spark = SparkSession.builder.config("spark.sql.sources.partitionOverwriteMode", "dynamic").getOrCreate()
    if half == "rows":
        enriched(spark, data, first, end).write.mode("overwrite").parquet(f"{out}/enriched")
    else:
        rows = spark.read.parquet(f"{out}/enriched") if half else enriched(spark, data, first, end)
        write_reports(rows.cache(), spark.read.parquet(f"{data}/airports"), out)
    spark.stop()


def write_reports(flown: DataFrame, airports: DataFrame, out: str) -> None:
    """The four of them, day by day."""
    by_route = flown.groupBy("day", "origin", "dest").agg(*means())
    reports = {
        "by_route": by_route,
        "by_carrier": flown.groupBy("day", "carrier").agg(*means(), sf.avg("age").alias("age")),
        "by_weather": flown.groupBy("day", sky().alias("sky")).agg(*means()),
        "worst": worst(by_route, airports),
    }
    for name, rows in reports.items():
        rows.write.mode("overwrite").partitionBy("day").parquet(f"{out}/{name}")


def enriched(spark: SparkSession, data: str, first: str, end: str) -> DataFrame:
    """Flights that arrived, with the weather where and when they left and the age of the plane."""
    flights = spark.read.parquet(f"{data}/flights").where((sf.col("day") >= first) & (sf.col("day") < end))
    weather = spark.read.parquet(f"{data}/weather").select("origin", "time_hour", "wind_speed", "precip", "visib")
    planes = spark.read.parquet(f"{data}/planes").select("tailnum", (2013 - sf.col("year")).alias("age"))
    arrived = flights.where(sf.col("arr_delay").isNotNull())
    return arrived.join(weather, ["origin", "time_hour"], "left").join(planes, "tailnum", "left")


def means() -> tuple[Column, Column, Column]:
    """What each report says of a set of flights."""
    delays = (sf.avg(name).alias(name) for name in ("dep_delay", "arr_delay"))
    return sf.count("*").alias("flights"), *delays  # type: ignore[return-value]


def sky() -> Column:
    """The weather in a word."""
    rain, fog, wind = sf.col("precip") > 0, sf.col("visib") < 5, sf.col("wind_speed") > 20
    return sf.when(rain, "rain").when(fog, "fog").when(wind, "wind").otherwise("fair")


def worst(by_route: DataFrame, airports: DataFrame) -> DataFrame:
    """The ten routes of each day with the longest delays."""
    names = airports.select(sf.col("faa").alias("dest"), sf.col("name").alias("airport"))
    order = Window.partitionBy("day").orderBy(sf.desc("arr_delay"), "origin", "dest")
    ranked = by_route.join(names, "dest").where("flights > 1").withColumn("place", sf.row_number().over(order))
    return ranked.where("place <= 10").select("day", "origin", "dest", "airport", "flights", "arr_delay")


if __name__ == "__main__":
    main(*sys.argv[1:])
