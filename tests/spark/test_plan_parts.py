"""Plans are read in a few messages with Java."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.spark.session.plan_columns import find_use
from tests.spark.messages import count_messages

pytestmark = pytest.mark.spark

MARK = "s__0"


def make_reader(marked: DataFrame, nodes: int) -> DataFrame:
    """A plan of about so many nodes that asks one thing of all rows, and takes two columns."""
    df = marked.where("a > 3")
    for at in range(nodes // 2):
        df = df.repartition(2).select("a", (sf.col("b") + at).alias("b"))
    return df


def count_for(spark: SparkSession, marked: DataFrame, nodes: int) -> int:
    df = make_reader(marked, nodes)
    find_use(df, marked, MARK)
    with count_messages(spark) as sent:
        use = find_use(df, marked, MARK)
    assert use is not None
    assert use.columns == {0, 1}
    assert len(use.conditions or {}) == 1
    return len(sent)


def test_a_large_plan_takes_as_many_messages_as_a_small_one(spark: SparkSession) -> None:
    marked = spark.range(9).selectExpr("id as a", "id as b", "id as c").alias(MARK)
    assert count_for(spark, marked, 60) == count_for(spark, marked, 4)


def test_a_wide_dataset_takes_as_many_messages_as_a_narrow_one(spark: SparkSession) -> None:
    narrow = spark.range(9).selectExpr("id as a", "id as b").alias(MARK)
    wide = spark.range(9).selectExpr("id as a", "id as b", *(f"id as c{at}" for at in range(40))).alias(MARK)
    assert count_for(spark, wide, 4) == count_for(spark, narrow, 4)
