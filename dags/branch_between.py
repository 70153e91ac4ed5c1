"""An ordinary Airflow task between steps: a branch on how many rows a step wrote.

readings -> enough? -> averages     (one application up to the branch,
                    -> plain_copy    one after it; the branch not taken is skipped)
"""

import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, Table

HOME = os.environ.get("AIRFLOW_HOME", str(Path.home() / "airflow"))


@dag(schedule=None, params={"readings": 500})
def branch_between():
    with SparkDataflow("sensors", work_dir=f"{HOME}/dagsched"):

        @task.spark_step
        def readings(spark, params):
            return spark.range(params["readings"]).selectExpr("id % 5 as sensor", "id * 31 % 17 as value")

        # Towards an ordinary task a step's return value says where its rows are, and how many.
        @task.branch
        def enough(result):
            return "sensors.averages" if result["rows"] >= 100 else "sensors.plain_copy"

        @task.spark_step(writes=Table(f"{HOME}/tables/sensor_averages"))
        def averages(readings):
            return readings.groupBy("sensor").avg("value").withColumnRenamed("avg(value)", "value")

        @task.spark_step(writes=Table(f"{HOME}/tables/sensor_readings"))
        def plain_copy(readings):
            return readings

        # Towards a step the same return value is the rows themselves.
        rows = readings()
        enough(rows) >> [averages(rows), plain_copy(rows)]


branch_between()
