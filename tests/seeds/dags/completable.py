"""Seed 000: the completable subgraphs of three task graphs. Each is a dataflow; what is cut is spilled.

detour   A ══> B ══> D        C takes what has been accepted whole, and still waits for A, as D for it: alone it would
         └─~~> C ~~─>┘        wait for the group that waits for it, so all are one subgraph
cut      A ══> B ══> C ══> D  of 20, 1 and 20 MB, two tasks at once: cut where the least is spilled, {A B} {C D}
split    A ══> B ~~> C ══> D  a channel that accepts everything lets each side be complete, {A B} {C D}
"""

import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, Table, channel

HOME = os.environ.get("SEEDS_HOME", str(Path.home() / "seeds"))
MB = 2**20
SETTINGS = {"conn_id": "cluster", "work_dir": f"{HOME}/work"}


@task.spark_step(memory=300)
def source(spark):
    return spark.range(100)


@task.spark_step(memory=300)
def odd(rows):
    return rows.where("id % 2 = 1")


@task.spark_step(memory=300)
def doubled(rows):
    return rows.selectExpr("id * 2 as id")


def sink(name):
    @task.spark_step(task_id="d", memory=300, writes=Table(f"{HOME}/tables/{name}"))
    def union(one, other=None):
        return one if other is None else one.unionByName(other)

    return union


@dag(schedule=None)
def completable():
    with SparkDataflow("detour", **SETTINGS):
        a = source.override(task_id="a")()
        accepted = channel(doubled.override(task_id="c")(channel(a, kind="buffered")), kind="buffered")
        sink("detour")(odd.override(task_id="b")(a), accepted)

    with SparkDataflow("cut", max_steps_per_group=2, **SETTINGS):
        b = odd.override(task_id="b")(source.override(task_id="a")(), bytes=20 * MB)
        c = doubled.override(task_id="c")(b, bytes=1 * MB)
        sink("cut")(c, bytes=20 * MB)

    with SparkDataflow("split", apart=[["b", "c"]], **SETTINGS):
        b = odd.override(task_id="b")(source.override(task_id="a")())
        sink("split")(doubled.override(task_id="c")(channel(b, kind="buffered")))


completable()
