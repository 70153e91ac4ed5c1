"""The driver's own files, on this machine or on any file system Spark can reach."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from airflow_dagsched.spark.files.store import make_local_path
from airflow_dagsched.spark.java_objects import find_class


def is_local(path: str) -> bool:
    """Whether Python can open it; a path without a scheme is this machine's."""
    # Hadoop spells it file:/a, people file:///a: both begin like this.
    return "://" not in path or path.startswith("file:")


def read_bytes(path: str) -> bytes:
    """The file's content."""
    if is_local(path):
        return Path(make_local_path(path)).read_bytes()
    # There is one session's application a process: if this is the first to ask, the steps run in it later.
    return _read_in_hadoop(SparkSession.builder.getOrCreate(), path)


def _read_in_hadoop(spark: SparkSession, path: str) -> bytes:
    where = find_class(spark, "org.apache.hadoop.fs.Path")(path)
    stream = where.getFileSystem(spark._jsc.hadoopConfiguration()).open(where)
    try:
        # One call for all of it: each one through py4j is a round trip to the JVM.
        return bytes(find_class(spark, "org.apache.commons.io.IOUtils").toByteArray(stream))
    finally:
        stream.close()
