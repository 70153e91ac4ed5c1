"""How batches are written aside."""

from __future__ import annotations

from pyspark.sql import DataFrame, DataFrameWriter

from airflow_dagsched.spark.files.store import Store


def write_into_new(store: Store, df: DataFrame, folder: str) -> DataFrameWriter:
    """A writer into this folder, which it makes: Spark starts a process for each that it makes on a local disk."""
    store.mkdirs(folder)
    # Else it refuses a folder that is there.
    return df.write.mode("append").option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
