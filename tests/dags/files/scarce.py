"""Two dataflows with less memory than they need: on the cluster, and as their author declares it."""

from __future__ import annotations

import os

from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow, Table

TABLES = f"{os.environ['AIRFLOW_HOME']}/tables"


@task.spark_step(cores=2, memory="100m")
def numbers(spark):
    return spark.range(1000)


@task.spark_step(memory="2g")
def squares(numbers):
    return numbers.selectExpr("id", "id * id as square")


@task.spark_step(memory="2g", writes=Table(f"{TABLES}/evens"))
def evens(squares):
    return squares.where("id % 2 = 0")


@task.spark_step(memory="100m", writes=Table(f"{TABLES}/gathered"))
def gathered(spark):
    """All numbers in one row: some gigabytes on the heap."""
    return spark.range(40_000_000).selectExpr("collect_list(id) as ids").selectExpr("size(ids) as count")


with DAG("cut", schedule=None), SparkDataflow("cut"):
    evens(squares(numbers()))

with DAG("hungry", schedule=None), SparkDataflow("hungry"):
    gathered()
