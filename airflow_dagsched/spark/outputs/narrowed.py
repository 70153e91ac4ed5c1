"""A stored dataset that has only the columns that its readers used, and how it is read as if it had all.

::

    written     a  b                 what is left of  a  b  c  d
    read        a  b  c! d!          c!: of its type, and whoever computes it fails

No null, nor any other value, in the place of a column that was not stored: it could be taken for what was there.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from airflow_dagsched.spark.java_objects import find_class
from airflow_dagsched.spark.outputs.commits import NOT_STORED
from airflow_dagsched.spark.session.observed import quote_name
from airflow_dagsched.spark.session.sessions import make_frame

MISSING = "dagsched_missing"
BETWEEN = "\x01"
"""In no name of a column: Java could not have stored it."""


def restore_whole(df: DataFrame, whole: StructType) -> DataFrame:
    """The stored columns ``df`` with all of ``whole``, in its order."""
    stored, held = set(df.columns), MISSING
    while held in whole.names:
        held += "_"
    missing = StructType([field for field in whole.fields if field.name not in stored])
    if not missing.fields:
        return df
    names = (quote_name(name) if name in stored else f"{held}.{quote_name(name)}" for name in whole.names)
    # All at once: each word with Java is a message there and back, and there may be many columns.
    beside = df._jdf.withColumn(held, _fail_for(df, missing))
    chosen = find_class(df.sparkSession, "java.util.regex.Pattern").compile(BETWEEN).split(BETWEEN.join(names))
    return make_frame(beside.selectExpr(chosen).queryExecution().analyzed(), df.sparkSession)


def _fail_for(df: DataFrame, missing: StructType) -> Any:
    """A struct of these columns that nobody gets."""
    kind = find_class(df.sparkSession, "org.apache.spark.sql.types.DataType").fromJson(missing.json())
    # As all that is read from files: nothing in it, however deep, is known not to be null.
    return sf.raise_error(sf.lit(NOT_STORED))._jc.cast(kind.asNullable())
