"""Seven days, each its own interval or partition, written to two tables the days share.

::

    shops ─► ledger* ─► takings*      * writes a table
      │        │           └ one partition a day, overwritten by the day's run
      │        └ no partitions: each day appends its rows once
      └ the same for all days

A wire a day makes ``takings`` fail.
"""

from datetime import UTC, datetime

from airflow.sdk import CronDataIntervalTimetable, CronPartitionTimetable, dag, task
from gates import GATES, TABLES, WORK, trip

from airflow_dagsched import SparkDataflow, Table

FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 7, tzinfo=UTC)
INTERVALS = CronDataIntervalTimetable("0 0 * * *", timezone="UTC")
PARTITIONS = CronPartitionTimetable("0 0 * * *", timezone="UTC", key_format="%Y-%m-%d")


def backfilled(name, timetable):
    out, wire = f"{TABLES}/{name}", f"{GATES}/{name}"

    # The end lies in the past: the scheduler starts no run of its own beside the backfills.
    @dag(dag_id=name, schedule=timetable, start_date=FIRST, end_date=LAST, catchup=False)
    def build():
        with SparkDataflow("shop", work_dir=str(WORK)):

            @task.spark_step(reads=[])
            def shops(spark):
                # counted through Spark: a step that opens a file itself may be another each day
                spark.range(1).write.mode("append").parquet(f"{TABLES}/{name}/called")
                return spark.range(20).selectExpr("id", "id % 4 as shop")

            @task.spark_step(writes=Table(f"{out}/ledger", mode="append"))
            def ledger(shops, interval):
                day = interval.start.date()
                return shops.selectExpr("id", "shop", f"id * {day.day} as amount", f"date'{day}' as day")

            @task.spark_step(writes=Table(f"{out}/takings", partition_by=["day"]))
            def takings(ledger, interval):
                trip(f"{wire}-{interval.start:%d}", "the shop was closed")
                return ledger.groupBy("day", "shop").sum("amount").withColumnRenamed("sum(amount)", "amount")

            takings(ledger(shops()))

    build()


backfilled("intervals", INTERVALS)
backfilled("partitions", PARTITIONS)
backfilled("intervals_per_step", INTERVALS)
