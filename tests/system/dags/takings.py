"""One small dataflow under several names; each meets another fate, the last ones none.

::

    sales ─┬─► totals* ─► best*       * writes a table
           │      └─► mail ─┘           leaves a value, and a line that cannot be taken back
           └─► ledger*                  (appends once per interval)

``best`` passes a gate and a wire: a test can hold it half-way, or make it fail, when ``totals`` is written.
"""

from datetime import timedelta

from airflow.sdk import dag, task
from gates import GATES, TABLES, WORK, note, pass_through, trip

from airflow_dagsched import SparkDataflow, Table

FATES = ("fails_once", "driver_killed", "worker_killed", "marked_failed", "twice_at_once", "undisturbed")


def takings(fate):
    out, gate = f"{TABLES}/{fate}", f"{GATES}/{fate}"

    @dag(dag_id=fate, schedule=None)
    def build():
        with SparkDataflow("takings", work_dir=str(WORK), retries=1, retry_delay=timedelta(seconds=1), lease_s=20.0):

            @task.spark_step
            def sales(spark, interval):
                day = f"date'{interval.start:%Y-%m-%d}'"
                return spark.range(1000).selectExpr("id", "id % 7 as shop", "id * 37 % 101 as amount", f"{day} as day")

            @task.spark_step(writes=Table(f"{out}/totals", partition_by=["day"]))
            def totals(sales):
                return sales.groupBy("day", "shop").sum("amount").withColumnRenamed("sum(amount)", "amount")

            @task.spark_step(writes=Table(f"{out}/ledger", mode="append"))
            def ledger(sales):
                return sales.where("amount > 90")

            @task.spark_step
            def mail(totals):
                note(fate, f"{totals.count()} shops")
                return {"shops": totals.count()}

            @task.spark_step(writes=Table(f"{out}/best", partition_by=["day"]))
            def best(totals, mailed):
                assert mailed == {"shops": 7}
                pass_through(gate)
                trip(gate, "the till is open")
                return totals.orderBy("amount", ascending=False).limit(3)

            sold = sales()
            ledger(sold)
            summed = totals(sold)
            best(summed, mail(summed))

    build()


for fate in FATES:
    takings(fate)
