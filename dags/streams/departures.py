"""Departures from New York as they come: flights of each hour and airport, and how many of them left late.

Edit ``LATE_MIN`` while it runs: a new graph counts by the new rule from the end of an hour on, and no hour is missing.
"""

import os
from pathlib import Path

from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow, StreamEpochs, Table

HOME = os.environ.get("AIRFLOW_HOME", str(Path.home() / "airflow"))
DATA, OUT = os.environ.get("DEPARTURES_DATA", f"{HOME}/data"), os.environ.get("DEPARTURES_OUT", f"{HOME}/tables")
LATE_MIN = 15

with (
    DAG("departures", schedule=StreamEpochs("departures"), max_active_runs=3, catchup=False),
    SparkDataflow(
        "departures",
        mode="streaming",
        window="1 hour",
        lateness="30 minutes",
        trigger="1 second",
        work_dir=os.environ.get("DEPARTURES_WORK", f"{HOME}/dagsched"),
        driver_memory="700m",
        # A demo's life is short: Java's quick compiler is enough for it.
        conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"},
    ),
):

    @task.spark_stream_source(
        format="parquet",
        path=f"{DATA}/departures",
        event_time="scheduled",
        schema="scheduled timestamp, origin string, dep_delay bigint",
    )
    def departures(rows):
        return rows

    @task.spark_step(stateful=True, parallelism=2)
    def by_hour(departures):
        from pyspark.sql.functions import expr, window

        counts = (expr("count(*) as flights"), expr(f"count_if(dep_delay > {LATE_MIN}) as late"))
        hours = departures.groupBy(window("scheduled", "1 hour").alias("hour"), "origin").agg(*counts)
        return hours.selectExpr("hour.end as hour", "origin", "flights", "late")

    @task.spark_step(writes=Table(f"{OUT}/by_hour", mode="append"))
    def report(by_hour):
        return by_hour

    report(by_hour(departures()))
