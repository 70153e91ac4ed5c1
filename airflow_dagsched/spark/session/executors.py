"""How many executors the application has now."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from pyspark.sql import SparkSession


def make_counter(spark: SparkSession) -> Callable[[], int | None]:
    """A function that tells; None on this machine, where the driver is all there is, and where Spark doesn't say."""
    sc = spark.sparkContext
    if str(sc.master).startswith("local"):
        return lambda: None
    known = sc._jsc.sc().statusTracker()

    def count() -> int | None:
        with suppress(Exception):  # Spark is stopping
            return max(0, len(known.getExecutorInfos()) - 1)  # the driver is among them
        return None

    return count
