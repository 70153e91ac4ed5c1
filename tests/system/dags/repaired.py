"""A step that fails for good, until a person removes the cause and clears.

::

    sales ─┬─► kept* ─► told                      * writes a table; told leaves a line that cannot be taken back
           └─► broken* ─► below* ─► publish       publish is an ordinary task
"""

from airflow.sdk import dag, task
from gates import GATES, TABLES, WORK, note, trip

from airflow_dagsched import SparkDataflow, Table


def repaired(name):
    out, wire = f"{TABLES}/{name}", f"{GATES}/{name}"

    @dag(dag_id=name, schedule=None)
    def build():
        with SparkDataflow("goods", work_dir=str(WORK)):

            @task.spark_step
            def sales(spark):
                return spark.range(100).selectExpr("id", "id % 5 as shop")

            @task.spark_step(writes=Table(f"{out}/kept"))
            def kept(sales):
                return sales.where("shop = 1")

            @task.spark_step
            def told(kept):
                note(name, f"{kept.count()} sales")

            @task.spark_step(writes=Table(f"{out}/broken"))
            def broken(sales):
                trip(wire, "no such warehouse")
                return sales.groupBy("shop").count()

            @task.spark_step(writes=Table(f"{out}/below"))
            def below(broken):
                return broken.where("shop > 2")

            sold = sales()
            told(kept(sold))
            last = below(broken(sold))

        @task
        def publish(last):
            return last["rows"]

        publish(last)

    build()


repaired("repaired")
repaired("repaired_per_step")
