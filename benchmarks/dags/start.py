# mypy: ignore-errors
"""One step that counts a few rows: what is left is Spark starting."""

import os

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow

WORK = os.environ.get("START_WORK", "/tmp/start_work")


@dag(schedule=None)
def start():
    with SparkDataflow("start", conn_id="spark_default", work_dir=WORK):

        @task.spark_step(parallelism=2)
        def count(spark):
            return spark.range(0, 1000, 1, 2).groupBy("id").count().count()

        count()


start()
