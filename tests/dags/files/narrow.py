"""Two groups with an ordinary task between them; on one day the second reads more than on others."""

from __future__ import annotations

from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow


@task.spark_step
def wide(spark, ds):
    rows = spark.range(1000).selectExpr("id", *(f"id * {at} as c{at}" for at in range(30)))
    return rows.withColumn("day", rows["id"] % 7)


@task.spark_step
def total(wide, ds):
    column = "c9" if ds == "2024-01-03" else "c1"
    return wide.where("id >= 900").groupBy().sum(column).toDF("total")


@task.spark_step
def days(wide):
    return wide.where("id >= 900").groupBy("day").count()


@task
def approve():
    """Nothing: it only stands between."""


with DAG("narrow", schedule=None), SparkDataflow("flow"):
    rows = wide()
    asked = approve()
    rows >> asked
    for reader in (total(rows), days(rows)):
        asked >> reader
