"""Whether an application that has waited can still do what a run will ask of it: a look, and a job where that is quick.

On a cluster it has no executors while it waits: what a job would tell there is how long new ones take. That its manager
has ended it Spark hears by itself, and stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airflow_dagsched.spark.java_objects import find_class

LONGEST_TEXT = 300
"""Letters of what Java says."""


def find_trouble(spark: SparkSession) -> str:
    """Why no run can go on here; empty: one can. A job that does not end is its caller's to see."""
    sc = spark.sparkContext._jsc.sc()
    if sc.isStopped():
        return "SparkContext was shut down"
    # As what cleans up temporary folders takes them.
    gone = next((folder for folder in _list_folders(spark) if not folder.is_dir()), None)
    if gone is not None:
        return f"Spark's folder {gone} is gone"
    return _try_job(spark) if sc.isLocal() else ""


def _list_folders(spark: SparkSession) -> Iterator[Path]:
    """Of the driver, for what it can't keep in memory; and for shuffles, where it is the executor."""
    blocks = find_class(spark, "org.apache.spark.SparkEnv").get().blockManager().diskBlockManager()
    return (Path(str(each)) for each in blocks.localDirs())


def _try_job(spark: SparkSession) -> str:
    """A job with a shuffle: one task writes, another reads. Not of SQL, which would think about it for longer."""
    spark.sparkContext.setJobDescription("whether this application can take another run")
    rows = find_class(spark, "java.util.Collections").nCopies(1, 1)
    try:
        spark.sparkContext._jsc.parallelize(rows, 1).repartition(1).count()
    except (Py4JError, PySparkException) as error:
        return f"its Spark fails: {' '.join(str(error).split())[:LONGEST_TEXT]}"
    return ""
