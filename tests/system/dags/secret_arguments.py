"""A password in a step's argument, from a connection and from a variable; the step prints it, and may raise with it."""

from airflow.sdk import dag, task
from gates import TABLES, WORK

from airflow_dagsched import SparkDataflow, Table


@dag(schedule=None, params={"raises": False})
def secret_arguments():
    with SparkDataflow("shop", work_dir=str(WORK)):

        @task.spark_step(writes=Table(f"{TABLES}/secret_arguments/lengths"))
        def lengths(spark, params, by_connection, by_variable):
            print("asked", by_connection, "and", by_variable)
            if params["raises"]:
                raise RuntimeError(f"refused by {by_connection} and {by_variable}")
            return spark.sql(f"select {len(by_connection)} as connection, {len(by_variable)} as variable")

        lengths("{{ conn.shop_db.get_uri() }}", "{{ var.value.shop_url }}")


secret_arguments()
