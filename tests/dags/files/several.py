"""Several dataflows in one DAG: one of two groups, and two whose only groups have the same name."""

from __future__ import annotations

from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow


@task.spark_step(isolate=True)
def numbers(spark):
    return spark.range(1000)


@task.spark_step(isolate=True)
def total(numbers):
    return int(numbers.agg({"id": "sum"}).first()[0])


@task.spark_step
def few(spark):
    return spark.range(3).count()


@task.spark_step
def many(spark):
    return spark.range(3000).count()


with DAG("several", schedule=None):
    with SparkDataflow("chain"):
        total(numbers())
    with SparkDataflow("one"):
        few()
    with SparkDataflow("other"):
        many()
