# mypy: ignore-errors
"""A group of wide and narrow steps, drawn from a seed: each instance of a step is one task of so many seconds."""

import os
import random
import time

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow

SEED = int(os.environ.get("INSIDE_SEED", "0"))
WORK = os.environ.get("INSIDE_WORK", "/tmp/inside_work")
SCALE = float(os.environ.get("INSIDE_SCALE", "1"))
STEPS = (4, 8)
WIDE = (1, 1, 1, 2, 3, 4, 5)
"""Instances, of which one each is drawn."""
SECONDS = (1.0, 6.0)
EDGES = 0.25
"""How likely a step waits for one before it."""


@dag(schedule=None)
def inside():
    draw, made = random.Random(SEED), []
    with SparkDataflow("inside", conn_id="spark_default", work_dir=WORK):
        for at in range(draw.randint(*STEPS)):
            count, seconds = draw.choice(WIDE), round(draw.uniform(*SECONDS) * SCALE, 2)

            @task.spark_step(task_id=f"s{at}", parallelism=count)
            def work(spark, count, seconds, above):
                def wait(index):
                    time.sleep(seconds)
                    return index

                return spark.sparkContext.parallelize(range(count), count).map(wait).count()

            made.append(work(count, seconds, [one for one in made if draw.random() < EDGES]))


inside()
