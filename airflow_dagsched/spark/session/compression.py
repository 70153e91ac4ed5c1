"""Whether rows that are kept are compressed.

Spark does so, and looks at each value with each of its encodings before it takes one: a third of the time in which
rows of a join are kept. That is worth it where they would not fit into memory otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from airflow_dagsched.spark.java_objects import iterate_items

COMPRESSED = "spark.sql.inMemoryColumnarStorage.compressed"
"""Of a session. Spark reads it as a frame of that session is persisted."""
GROWTH = 16
"""Bytes in memory for one of the files that rows come from: seen are 5 (numbers, dates and short words in parquet)."""


@contextmanager
def compress_where_needed(df: DataFrame, room: int) -> Iterator[None]:
    """Have ``df``, persisted herein, compressed where it may not fit into ``room`` bytes as it is.

    As its author has it, where he says so.
    """
    conf = df.sparkSession.conf
    if _is_set(df) or bound_size(df) > room:
        yield
        return
    conf.set(COMPRESSED, "false")
    try:
        yield
    finally:
        conf.unset(COMPRESSED)


def bound_size(df: DataFrame) -> int:
    """Bytes that the rows of ``df`` will hardly exceed uncompressed; very many where a source doesn't say its own.

    Spark's own estimate takes a join for a product.
    """
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()
    return GROWTH * sum(int(leaf.stats().sizeInBytes()) for leaf in iterate_items(leaves))


def _is_set(df: DataFrame) -> bool:
    return bool(df.sparkSession._jsparkSession.sessionState().conf().contains(COMPRESSED))
