# mypy: ignore-errors
"""200 steps in 20 levels, each a Spark job of its own that waits for two steps of the level above."""

import os

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow

LEVELS, WIDTH = 20, 10


@dag(schedule=None)
def deep():
    with SparkDataflow("flow", work_dir=os.environ["DEEP_WORK"]):

        @task.spark_step
        def work(spark, left=0, right=0):
            return (spark.range(100).count() + left + right) % 1009

        level = [work.override(task_id=f"step_0_{at}")() for at in range(WIDTH)]
        for depth in range(1, LEVELS):
            level = [
                work.override(task_id=f"step_{depth}_{at}")(level[at], level[(at + 1) % WIDTH]) for at in range(WIDTH)
            ]


deep()
