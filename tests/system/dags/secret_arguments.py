"""Passwords in a step's arguments, from connections and variables, within URLs and alone, and in a setting.

The step prints them, and may raise with them, from a file in a folder named like one.
"""

from airflow.sdk import dag, task
from gates import TABLES, WORK

from airflow_dagsched import SparkDataflow, Table


@dag(schedule=None, params={"raises": False})
def secret_arguments():
    with SparkDataflow("shop", work_dir=str(WORK), conf={"spark.shop.secret": "{{ var.value.shop_token }}"}):

        @task.spark_step(writes=Table(f"{TABLES}/secret_arguments/lengths"))
        def lengths(spark, params, by_connection, by_variable, password, token):
            print("asked", by_connection, "and", by_variable)
            print("told", password, token, [spark.sparkContext.getConf().get("spark.shop.secret")])
            if params["raises"]:
                reason = f"refused by {by_connection} and {by_variable}, {password}, {token}"
                exec(compile("raise RuntimeError(reason)", f"/{password}/{token}.py", "exec"), {"reason": reason})
            return spark.sql(f"select {len(by_connection)} as connection, {len(by_variable)} as variable")

        lengths(
            "{{ conn.shop_db.get_uri() }}",
            "{{ var.value.shop_url }}",
            "{{ conn.shop_db.password }}",
            "{{ var.value.shop_token }}",
        )


secret_arguments()
