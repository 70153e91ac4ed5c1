"""Dataflows that cannot be launched as things are."""

from airflow.sdk import dag, task
from gates import WORK

from airflow_dagsched import SparkDataflow


def refused(name, conn_id, memory):
    @dag(dag_id=name, schedule=None)
    def build():
        with SparkDataflow("shop", conn_id=conn_id, work_dir=str(WORK)):

            @task.spark_step(memory=memory)
            def sales(spark):
                return spark.range(5)

            sales()

    build()


refused("no_connection", "spark_nowhere", "1g")
refused("does_not_fit", "spark_default", "9000g")
