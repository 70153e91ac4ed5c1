"""A table with one partition a day, each written by the run for that day, however often it is repeated.

airflow backfill create --dag-id backfill --from-date 2026-01-01 --to-date 2026-01-07 --max-active-runs 3
"""

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import CronPartitionTimetable, dag, task

from airflow_dagsched import SparkDataflow, Table

HOME = os.environ.get("AIRFLOW_HOME", str(Path.home() / "airflow"))
DAILY = CronPartitionTimetable("0 0 * * *", timezone="UTC", key_format="%Y-%m-%d")


@dag(schedule=DAILY, start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False)
def backfill():
    with SparkDataflow("takings", work_dir=f"{HOME}/dagsched"):
        # `interval` is the day of the run's partition. What a step makes must depend on nothing but
        # it and its inputs: not on the clock, else a backfilled day is not what it was.
        @task.spark_step
        def sales(spark, interval):
            day = interval.start.date()
            return spark.range(200).selectExpr("id % 4 as shop", f"id * {day.day} as amount", f"date'{day}' as day")

        # Overwrites the partitions it brings, and no other: days can run side by side, and again.
        @task.spark_step(writes=Table(f"{HOME}/tables/takings", partition_by=["day"]))
        def takings(sales):
            return sales.groupBy("day", "shop").sum("amount").withColumnRenamed("sum(amount)", "amount")

        takings(sales())


backfill()
