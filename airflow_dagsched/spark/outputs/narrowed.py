"""A stored dataset that has only the columns that its readers used, and how it is read as if it had all.

::

    written     a  b                 what is left of  a  b  c  d
    read        a  b  c! d!          c!: of its type, and whoever computes it fails

No null, nor any other value, in the place of a column that was not stored: it could be taken for what was there.
"""

from __future__ import annotations

import json

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from airflow_dagsched.spark.outputs.commits import NOT_STORED
from airflow_dagsched.spark.session.observed import quote_name


def restore_whole(df: DataFrame, whole: StructType) -> DataFrame:
    """The stored columns ``df`` with all of ``whole``, in its order."""
    stored = set(df.columns)
    nullable = _make_nullable(whole, df.sparkSession)
    return df.select(*[_read_column(field, field.name in stored) for field in nullable.fields])


def _read_column(field: StructField, is_stored: bool) -> Column:
    if is_stored:
        return sf.col(quote_name(field.name))
    return sf.raise_error(sf.lit(NOT_STORED)).cast(field.dataType).alias(field.name, metadata=field.metadata)


def _make_nullable(schema: StructType, session: SparkSession) -> StructType:
    """As all that is read from files: nothing in it, however deep, is known not to be null."""
    jvm = session._jvm
    assert jvm is not None
    java = jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
    return StructType.fromJson(json.loads(java.asNullable().json()))
