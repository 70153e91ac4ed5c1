"""The flights pipeline as one person would write it in one PySpark program: no Airflow, no planner.

Usage: spark-submit flights.py DATA OUT FIRST_DAY END_DAY
"""

from __future__ import annotations

import sys

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F


def main(data: str, out: str, first: str, end: str) -> None:
    """Write the four reports below ``out`` for the days from ``first`` to before ``end``."""
    spark = SparkSession.builder.config("spark.sql.sources.partitionOverwriteMode", "dynamic").getOrCreate()
    flown = enriched(spark, data, first, end).cache()
    by_route = flown.groupBy("day", "origin", "dest").agg(*means()).cache()
    reports = {
        "by_route": by_route,
        "by_carrier": flown.groupBy("day", "carrier").agg(*means(), F.avg("age").alias("age")),
        "by_weather": flown.groupBy("day", sky().alias("sky")).agg(*means()),
        "worst": worst(by_route, spark.read.parquet(f"{data}/airports")),
    }
    for name, rows in reports.items():
        rows.write.mode("overwrite").partitionBy("day").parquet(f"{out}/{name}")
    spark.stop()


def enriched(spark: SparkSession, data: str, first: str, end: str) -> DataFrame:
    """Flights that arrived, with the weather where and when they left and the age of the plane."""
    flights = spark.read.parquet(f"{data}/flights").where((F.col("day") >= first) & (F.col("day") < end))
    weather = spark.read.parquet(f"{data}/weather").select("origin", "time_hour", "wind_speed", "precip", "visib")
    planes = spark.read.parquet(f"{data}/planes").select("tailnum", (2013 - F.col("year")).alias("age"))
    arrived = flights.where(F.col("arr_delay").isNotNull())
    return arrived.join(weather, ["origin", "time_hour"], "left").join(planes, "tailnum", "left")


def means() -> tuple[Column, Column, Column]:
    """What each report says of a set of flights."""
    delays = (F.avg(name).alias(name) for name in ("dep_delay", "arr_delay"))
    return F.count("*").alias("flights"), *delays  # type: ignore[return-value]


def sky() -> Column:
    """The weather in a word."""
    rain, fog, wind = F.col("precip") > 0, F.col("visib") < 5, F.col("wind_speed") > 20
    return F.when(rain, "rain").when(fog, "fog").when(wind, "wind").otherwise("fair")


def worst(by_route: DataFrame, airports: DataFrame) -> DataFrame:
    """The ten routes of each day with the longest delays."""
    names = airports.select(F.col("faa").alias("dest"), F.col("name").alias("airport"))
    order = Window.partitionBy("day").orderBy(F.desc("arr_delay"), "origin", "dest")
    ranked = by_route.join(names, "dest").where("flights > 1").withColumn("place", F.row_number().over(order))
    return ranked.where("place <= 10").select("day", "origin", "dest", "airport", "flights", "arr_delay")


if __name__ == "__main__":
    main(*sys.argv[1:])
