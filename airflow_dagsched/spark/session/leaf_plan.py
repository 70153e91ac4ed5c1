"""Rows behind a plan that is a leaf: what is made of them is planned in the same time, however they were made."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame


def make_leaf(df: DataFrame) -> DataFrame:
    """``df`` with its rows as they will be executed: Spark can still make them again, and never plans that again.

    Stages of its plan that need an exchange may run now.
    """
    rows = df._jdf.queryExecution().toRdd()
    session = df.sparkSession
    return ClassicDataFrame(session._jsparkSession.internalCreateDataFrame(rows, df._jdf.schema(), False), session)
