"""
first -> second     in two applications, by their ``application=`` settings

``second`` does with its secrets all that it should not: prints them, returns them, puts them into a plan, and raises
with them from a file in a folder that is named like one.
"""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow

LOG = Path(os.environ["AIRFLOW_HOME"]) / "spark_events"
SETTINGS = {
    "spark.shop.by_variable": "{{ var.value.shop_token }}",
    "spark.hadoop.fs.s3a.secret.key": os.environ["STORE_KEY"],
    "spark.driver.extraJavaOptions": f"-Dshop.key={os.environ['STORE_KEY']} -Dshop.plain=yes",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": LOG.as_uri(),
    "spark.eventLog.compress": "false",
}


@dag(schedule=None)
def secretive():
    LOG.mkdir(exist_ok=True)
    with SparkDataflow("shop", conf=SETTINGS):

        @task.spark_step(application={"spark.shop.kind": "one"})
        def first(spark):
            assert spark.conf.get("spark.shop.kind") == "one"
            return spark.range(3)

        @task.spark_step(application={"spark.shop.kind": "two", "spark.scheduler.mode": "FIFO"})
        def second(spark, first, password, token, raises):
            from pprint import pformat
            from urllib.parse import quote

            from pyspark.sql.functions import lit

            conf = spark.sparkContext.getConf()
            key = conf.get("spark.hadoop.fs.s3a.secret.key")
            assert (conf.get("spark.shop.kind"), conf.get("spark.scheduler.mode")) == ("two", "FIFO")
            assert conf.get("spark.shop.by_variable") == token
            java = spark._jvm.System.getProperty
            assert (java("shop.key"), java("shop.plain")) == (key, "yes")
            print("asked", password, token, key, repr([password]), quote(password), pformat({"x": token}))
            first.where(lit(token) != "").explain()
            assert first.where(lit(password) != "").count() == 3
            if raises:
                where = f"/shop/{token}/till.py"
                exec(compile("raise RuntimeError(f'refused by {password} and {key}')", where, "exec"), locals())
            return {password: [token, key]}

        second(first(), "{{ conn.shop_db.password }}", "{{ var.value.shop_token }}", os.environ["RAISES"] == "yes")


secretive()
