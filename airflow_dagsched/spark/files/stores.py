"""Which store holds a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_dagsched.spark.files.hadoop_store import HadoopStore
from airflow_dagsched.spark.files.store import LocalStore, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_store(spark: SparkSession | None, url: str) -> Store:
    """The store that holds ``url``; a path without a scheme is on Spark's default file system."""
    if url.startswith("file:") or ("://" not in url and _is_default_local(spark)):
        # Not through Hadoop, whose local file system syncs nothing and puts .crc files beside ours.
        return LocalStore()
    assert spark is not None, f"{url}: only a Spark session can open this file system"
    return HadoopStore(spark)


def _is_default_local(spark: SparkSession | None) -> bool:
    if spark is None:
        return True
    default = spark._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///")
    return str(default).startswith("file:")
