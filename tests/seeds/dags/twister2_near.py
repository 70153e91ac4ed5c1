"""Seed 001: the third of Twister2's schedulers, data locality, on four workers; a file an instance, one copy of each.

near     rows of t1 on w3         w3 [t1/0 t1/1 t2/0 t2/1]
turns    the same rows            w1 [t1/0 t2/0]  w2 [t1/1 t2/1]    round robin does not ask who holds them
full     rows of t1 on w2, two    w2 [t1/0 t1/1]   the rest goes to the next container, as near as any other:
         instances a worker       w1 [t1/2 t1/3 t2/0 t2/1]
"""

import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, Table

HOME = os.environ.get("SEEDS_HOME", str(Path.home() / "seeds"))
LAKE = os.environ.get("SEEDS_LAKE", "hdfs://namenode")
MB = 2**20
# Nothing is left out, so that the policy alone says where; and what is far from its rows begins at once.
SETTINGS = {
    "conn_id": "cluster",
    "work_dir": f"{HOME}/work",
    "prune": "analysed",
    "conf": {"spark.locality.wait": "0s"},
}


def flow(name, table, instances, **placed):
    with SparkDataflow(name, **SETTINGS, **placed):

        @task.spark_step(parallelism=instances, memory=300, reads=Table(f"{LAKE}/{table}"))
        def t1(spark):
            return spark.read.parquet(f"{LAKE}/{table}")

        @task.spark_step(parallelism=2, memory=300, writes=Table(f"{HOME}/tables/{name}"))
        def t2(t1):
            return t1.selectExpr("sum(value) as total")

        t2(t1(), bytes=10 * MB)


@dag(schedule=None)
def twister2_near():
    flow("near", "two_on_w3", 2, placement="data_locality")
    flow("turns", "two_on_w3", 2, placement="round_robin")
    flow("full", "four_on_w2", 4, placement="data_locality", placement_settings={"max_instances_per_worker": 2})


twister2_near()
