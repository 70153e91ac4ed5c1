"""Whether rows that are kept are compressed.

Spark does so, and looks at each value with each of its encodings before it takes one: a third of the time in which
rows of a join are kept. That is worth it where they might not fit into memory otherwise.
"""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from airflow_dagsched.spark.java_objects import iterate_items

COMPRESSED = "spark.sql.inMemoryColumnarStorage.compressed"
"""Of a session. Spark reads it as a frame of that session is persisted."""
GROWTH = 16
"""Bytes in memory for one of the files that rows come from: seen are 5 (numbers, dates and short words in parquet)."""
SIZED = frozenset({"HiveTableRelation", "LocalRelation", "LogicalRelation", "OneRowRelation", "Range"})
"""Sources that know their bytes. One of another interface might list all its files to tell them."""
UNKNOWN = 1 << 62


def persist_frame(df: DataFrame, level: StorageLevel, room: int) -> int:
    """Persist ``df``, uncompressed where it probably fits into ``room`` bytes so, and its author doesn't say.

    Returns how many of these it may take: 0 where Spark compresses it as ever.
    """
    size = UNKNOWN if _is_set(df) else estimate_size(df)
    if size > room:
        df.persist(level)
        return 0
    conf = df.sparkSession.conf
    conf.set(COMPRESSED, "false")
    try:
        df.persist(level)
    finally:
        conf.unset(COMPRESSED)
    return size


def estimate_size(df: DataFrame) -> int:
    """Bytes that the rows of ``df`` hardly exceed uncompressed, unless it makes many of one; at least ``UNKNOWN``, too.

    Spark's own estimate takes a join for a product.
    """
    return GROWTH * sum(map(_measure_leaf, iterate_items(df._jdf.queryExecution().analyzed().collectLeaves())))


def _measure_leaf(leaf: Any) -> int:
    name = leaf.nodeName()
    if name == "CTERelationRef":  # what it refers to is in the plan, too
        return 0
    return int(leaf.stats().sizeInBytes()) if name in SIZED else UNKNOWN


def _is_set(df: DataFrame) -> bool:
    return bool(df.sparkSession._jsparkSession.sessionState().conf().contains(COMPRESSED))
