"""What a run may leave in an application, and how the next one comes to meet nothing of it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

MIB = 1024 * 1024


class Cleaner:
    """Knows how the application was before its first run.

    :param spark: its root session, which no run uses.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._sc: Any = spark.sparkContext._jsc.sc()
        self._jvm: Any = spark._jvm
        self._held: Any = None

    def note_begin(self) -> None:
        """A run begins."""

    def clean(self) -> str:
        """Remove what the last run left; why the application is not as it was all the same, empty: it is."""
        self._sc.cancelAllJobs()
        self._jvm.SparkSession.setDefaultSession(self._spark._jsparkSession)
        self._spark._jsparkSession.sharedState().cacheManager().clearCache()
        return ""

    def measure_heap(self) -> tuple[int, float]:
        """MiB of Java's heap that are in use once it is collected, and their share of what there may be."""
        self._jvm.System.gc()
        runtime = self._jvm.java.lang.Runtime.getRuntime()
        used = int(runtime.totalMemory()) - int(runtime.freeMemory())
        return used // MIB, used / int(runtime.maxMemory())
