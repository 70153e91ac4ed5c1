"""Seed 003: Jet's query on one key, of a table that is partitioned by it.

select sum(value) from sales where day = 2      partition    of four days one is read
                                                processor    it is one task: of four instances one has anything to do
                                                member       and one worker is enough for that
"""

import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, Table

HOME = os.environ.get("SEEDS_HOME", str(Path.home() / "seeds"))


@dag(schedule=None)
def jet():
    for prune in ("auto", False):
        name = "pruned" if prune else "whole"
        with SparkDataflow(name, conn_id="cluster", prune=prune, work_dir=f"{HOME}/work"):

            @task.spark_step(
                parallelism=4, memory=300, works_without_input=False, reads=Table(f"{HOME}/sales", where="day = 2")
            )
            def scan(spark):
                return spark.read.parquet(f"{HOME}/sales")

            @task.spark_step(memory=300, writes=Table(f"{HOME}/tables/{name}"))
            def total(scan):
                # For Spark a condition on the rows: it would read all days for it.
                return scan.where("value % 4 = 2").selectExpr("sum(value) as total")

            total(scan())


jet()
