"""Seed 003: Jet's member pruning. A query on one key runs on the members that hold it; its table is on an HDFS.

day       0      1      2      3                  select sum(value) from sales where day = ...
held by   w1     w2     w3     w1 and w2

one       day = 2    w3 alone                     whoever else there is has no part in it
two       day = 3    w1 and w2
whole     day = 2    w1 and w2, in turn           nothing is left out: the same rows are read from afar
"""

import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, Table

HOME = os.environ.get("SEEDS_HOME", str(Path.home() / "seeds"))
LAKE = os.environ.get("SEEDS_LAKE", "hdfs://namenode")


def query(name, day, prune):
    # A policy that asks nobody who holds what: who takes part is up to the pruning alone.
    with SparkDataflow(name, conn_id="cluster", placement="round_robin", prune=prune, work_dir=f"{HOME}/work"):

        @task.spark_step(
            parallelism=2, memory=300, works_without_input=False, reads=Table(f"{LAKE}/sales", where=f"day = {day}")
        )
        def scan(spark):
            return spark.read.parquet(f"{LAKE}/sales").where(f"day = {day}")

        @task.spark_step(memory=300, writes=Table(f"{HOME}/tables/{name}"))
        def total(scan):
            return scan.selectExpr("sum(value) as total")

        total(scan())


@dag(schedule=None)
def jet_members():
    query("one", 2, "auto")
    query("two", 3, "auto")
    query("whole", 2, False)


jet_members()
