"""Files that Spark writes into folders of its own machine."""

from __future__ import annotations

from pyspark.sql import SparkSession


def leave_out_checksums(spark: SparkSession) -> None:
    """Have no ``.crc`` file written beside each: they cost more than the rows of a small table.

    Where Hadoop has no native library, as in PySpark's package, it starts a process, ``chmod``, twice for each file and
    twice more for its checksum. An older checksum goes as its file is written over. Other file systems have none, and
    executors of other processes go on writing theirs.
    """
    hadoop = spark._jvm.org.apache.hadoop.fs.FileSystem  # type: ignore[union-attr]
    local = spark._jvm.java.net.URI("file:///")  # type: ignore[union-attr]
    # Hadoop has one of it in a process, so this is what all writers get.
    hadoop.get(local, spark._jsc.hadoopConfiguration()).setWriteChecksum(False)
