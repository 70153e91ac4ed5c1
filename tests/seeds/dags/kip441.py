"""Seed 002: a step with state, as KIP-441 places it. What it holds is kept by nobody yet: the file is refused."""

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow


@dag(schedule=None)
def kip441():
    with SparkDataflow("counts", conn_id="cluster", placement="high_availability"):

        @task.spark_step(parallelism=4, stateful=True)
        def count(spark):
            return spark.range(10)

        count()


kip441()
