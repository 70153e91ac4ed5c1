"""Where a benchmark runs Airflow's pieces: a home folder of its own, a connection to Spark in this machine."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

from airflow_dagsched.launch.managers.compiler import LIGHT_COMPILER

MASTER = "local[2]"
JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
CONF = {"spark.driver.memory": "2g"}
"""The same for every way to run a case."""
PLAIN = {**CONF, JAVA_OPTIONS: ""}
"""Java as it comes: without what a launch task chooses for it, as a DAG of spark-submits runs today."""
LIGHT = {**CONF, JAVA_OPTIONS: LIGHT_COMPILER}
"""Java's quick compiler alone, as a launch task chooses it for short applications; a person may, too."""


def enter(home: Path) -> None:
    """Point this process's Airflow to ``home``. To be called before Airflow is imported."""
    home.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": MASTER}),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    logging.disable(logging.WARNING)
