# mypy: ignore-errors
"""Five groups in a chain, ordinary tasks between them; in each but the first a long step that waits for none of them.

::

    first* ─► check1 ─► sum1* ─► check2 ─► sum2* ─► check3 ─► sum3* ─► check4 ─► sum4*       * steps
                long1* ──┘         long2* ──┘         long3* ──┘         long4* ──┘

Twice, as two DAGs that differ in ``replan`` alone.
"""

import os
import time
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, Table

HOME = Path(os.environ["AIRFLOW_HOME"])
FIRST_S, LONG_S, SUM_S = 3.0, 40.0, 1.0
GROUPS = 5


def build_five(replan):
    tables = f"{HOME}/tables/{replan}"

    @task.spark_step
    def first(spark):
        time.sleep(FIRST_S)
        return spark.range(10)

    @task.spark_step
    def long(spark, number):
        time.sleep(LONG_S)
        with (HOME / f"{replan}.calls").open("a") as file:
            file.write(f"long{number}\n")
        return spark.range(1000).selectExpr(f"id * {number} as n")

    @task.spark_step
    def add_up(rows):
        time.sleep(SUM_S)
        return rows.selectExpr("sum(n) as total")

    @task
    def check(number):
        return number

    @dag(dag_id=f"five_{replan}", schedule=None)
    def five():
        with SparkDataflow("flow", work_dir=f"{HOME}/work", replan=replan):
            above = first()
            for number in range(1, GROUPS):
                rows = long.override(task_id=f"long{number}")(number)
                checked = check.override(task_id=f"check{number}")(number)
                above >> checked
                above = add_up.override(task_id=f"sum{number}", writes=Table(f"{tables}/{number}"))(rows)
                checked >> above

    five()


build_five("off")
build_five("regroup")
