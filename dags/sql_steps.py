"""Steps in SQL: the inputs are views named after their steps, templates work, the text may be a file."""

import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, SparkSqlStep, Table

HOME = os.environ.get("AIRFLOW_HOME", str(Path.home() / "airflow"))


@dag(schedule=None, params={"least": 7000})
def sql_steps():
    with SparkDataflow("shops", work_dir=f"{HOME}/dagsched"):

        @task.spark_step
        def orders(spark):
            return spark.range(1000).selectExpr("id", "id % 7 as shop", "id * 37 % 100 as amount")

        # The view `orders` is what the step `orders` returned.
        totals = SparkSqlStep(
            "totals", sql="select shop, sum(amount) as total from orders group by shop", inputs=[orders()]
        )

        # A mapping gives the views other names; `{{ params.least }}` in the file is rendered before the run.
        SparkSqlStep(
            "best",
            sql="sql/best_shops.sql",
            inputs={"shops": totals.output},
            writes=Table(f"{HOME}/tables/best_shops"),
        )


sql_steps()
