"""Seed 001: two tasks of two instances each on two containers, by each of Twister2's first two schedulers.

round_robin     w1 [t1/0 t2/0]  w2 [t1/1 t2/1]
first_fit       w1 [t1/0 t1/1 t2/0 t2/1]
"""

import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, Table

HOME = os.environ.get("SEEDS_HOME", str(Path.home() / "seeds"))


@dag(schedule=None)
def twister2():
    for policy in ("round_robin", "first_fit"):
        pair = f"{HOME}/pair.json"
        with SparkDataflow(policy, conn_id="cluster", placement=policy, cluster=pair, work_dir=f"{HOME}/work"):

            @task.spark_step(parallelism=2, memory=300)
            def t1(spark):
                return spark.range(1000)

            @task.spark_step(parallelism=2, memory=300, writes=Table(f"{HOME}/tables/{policy}"))
            def t2(t1):
                return t1.repartition(2).selectExpr("id * 2 as value")

            t2(t1())


twister2()
