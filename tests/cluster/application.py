"""A Spark application for tests: holds its executors while it counts, then prints what it was given, as JSON.

``spark-submit application.py EXECUTORS [FILE]``: counts once so many executors have registered, and ends once
FILE is there. ``application.py idle FILE``: counts nothing. ``application.py conf``: only prints what spark-submit
has made of the settings. ``application.py scan EXECUTORS TABLE FOLDER...``: sums column ``value`` of those folders of
a table, once so many executors have registered.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

PATIENCE_S = 60.0


def main(what: str, *arguments: str) -> dict[str, Any]:
    """Run as the command line says."""
    if what == "conf":
        SparkContext._ensure_initialized()  # else a SparkConf knows nothing of spark-submit
        return dict(SparkConf().getAll())
    return _scan(int(arguments[0]), *arguments[1:]) if what == "scan" else _hold(what, *arguments)


def _hold(what: str, file: str = "") -> dict[str, Any]:
    spark = SparkSession.builder.getOrCreate()
    count = None if what == "idle" else _count(spark, int(what))
    _wait(lambda: not file or Path(file).exists())
    hosts = _list_hosts(spark)
    found = {"application": spark.sparkContext.applicationId, "executors": len(hosts), "hosts": hosts, "count": count}
    spark.stop()
    return found


def _scan(executors: int, table: str, *folders: str) -> dict[str, Any]:
    spark = SparkSession.builder.getOrCreate()
    _wait(lambda: len(_list_hosts(spark)) >= executors)
    read = spark.read.schema("value long").option("basePath", table).parquet(*(f"{table}/{one}" for one in folders))
    row = read.selectExpr("count(value) rows", "sum(value) sum").first()
    assert row is not None
    spark.stop()
    return row.asDict()


def _count(spark: SparkSession, executors: int) -> int:
    _wait(lambda: len(_list_hosts(spark)) >= executors)
    return spark.range(1000).repartition(8).count()


def _list_hosts(spark: SparkSession) -> list[str]:
    """Of each executor that is up, the driver apart, which is on this list too."""
    driver = spark.conf.get("spark.driver.host")
    hosts = [executor.host() for executor in spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()]
    return sorted(host for host in hosts if host != driver)


def _wait(done: Any) -> None:
    until = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < until:
        time.sleep(0.2)


if __name__ == "__main__":
    print("\n" + json.dumps(main(*sys.argv[1:])))
