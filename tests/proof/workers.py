"""Applications on chosen workers of a standalone cluster, as a launch would put them there."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.request import urlopen

from airflow_dagsched.launch.managers.executors import Executors
from airflow_dagsched.launch.managers.standalone.live import read_standalone_cluster
from airflow_dagsched.launch.managers.standalone.submit import make_standalone_submission
from tests.testbed.spark_cluster import StandaloneCluster

CORES, MEMORY_MB = 2, 1024
"""Of an executor."""


def make_conf(cluster: StandaloneCluster, host: str) -> dict[str, str]:
    """Settings of an application that has one executor, on that worker."""
    page = f"{cluster.ui}/json/"
    with urlopen(page, timeout=5) as answer:
        known = read_standalone_cluster(answer.read(), page)
    asked: Mapping[str, str] = make_standalone_submission(
        Executors({host: 1}, CORES, MEMORY_MB), known, exact=True
    ).conf
    return {**asked, "spark.master": cluster.master, "spark.driver.host": "127.0.0.1"}
