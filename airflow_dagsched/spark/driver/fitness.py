"""Whether this Python and this Spark are what a manifest was made for."""

from __future__ import annotations

import sys

from airflow_dagsched.launch.managers.spark_versions import judge_version
from airflow_dagsched.spark.driver.launch_secrets import Refused


def check_python(python: str) -> None:
    """Raises ``Refused`` where this program runs on another than the one that pickled the steps, ``major.minor``."""
    found = f"{sys.version_info.major}.{sys.version_info.minor}"
    if python != found:
        raise Refused(
            f"the steps were pickled by Python {python}, the driver program runs on {found}: "
            "set spark.pyspark.python and PYSPARK_DRIVER_PYTHON to the version Airflow runs on"
        )


def check_version(version: str) -> None:
    """Raises ``Refused`` where the running Spark must run no step."""
    unfit = judge_version(version)
    if unfit is not None:
        raise Refused(str(unfit))
