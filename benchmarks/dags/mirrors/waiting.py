# mypy: ignore-errors
"""A chain of as many steps as the benchmark asks for; the first waits until the file ``go`` is in Airflow's home."""

import os
import time
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, Table

HOME = Path(os.environ["AIRFLOW_HOME"])
STEPS = int(os.environ["MIRRORS"])


@task.spark_step
def first(spark):
    while not (HOME / "go").exists():
        time.sleep(0.2)
    return spark.range(10)


@task.spark_step
def then(above):
    return above.selectExpr("id + 1 as id")


@task.spark_step(writes=Table(f"{HOME}/table"))
def last(above):
    return above


@dag(dag_id="waiting", schedule=None)
def waiting():
    with SparkDataflow("flow", work_dir=f"{HOME}/work"):
        rows = first()
        for number in range(STEPS - 2):
            rows = then.override(task_id=f"then_{number}")(rows)
        last(rows)


waiting()
