"""Steps whose input is corrected while their run is at work, or after it: what is read is not declared.

::

    prices* ─► totals* ─► publish       * writes a table, totals appends
      │          └ holds at a gate      publish is an ordinary task
      └ reads a file, then holds at a gate; its name may change
"""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import dag, task
from gates import GATES, HOME, TABLES, WORK, pass_through

from airflow_dagsched import SparkDataflow, Table


def rounds(name, retries):
    out, gate, renamed = f"{TABLES}/{name}", f"{GATES}/{name}", HOME / "inputs" / f"{name}.step"
    first = renamed.read_text() if renamed.exists() else "prices"
    retry = {"retries": retries, "retry_delay": timedelta(seconds=1)}

    @dag(dag_id=name, schedule=None)
    def build():
        with SparkDataflow("shop", work_dir=str(WORK), **retry):

            @task.spark_step(task_id=first, writes=Table(f"{out}/prices"))
            def prices(spark):
                price = Path(HOME / "inputs" / f"{name}.txt").read_text()
                pass_through(f"{gate}-prices")
                return spark.range(4).selectExpr("id", f"{price} as price")

            @task.spark_step(writes=Table(f"{out}/totals", mode="append"))
            def totals(prices):
                pass_through(f"{gate}-totals")
                return prices.groupBy().sum("price").withColumnRenamed("sum(price)", "total")

            sums = totals(prices())

        @task
        def publish(rows):
            return rows["rows"]

        publish(sums)

    build()


rounds("cleared", retries=1)
rounds("again", retries=0)
rounds("renamed", retries=0)
rounds("frozen", retries=1)
