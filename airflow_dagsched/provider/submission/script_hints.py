"""What spark-submit's own scripts would find out at each start, told to them.

::

    spark-submit ── find-spark-home ── a Python that looks for Spark             SPARK_HOME: it does not start
                 └─ spark-class ────── a Java that writes the command line       SPARK_LAUNCHER_OPTS: it starts sooner
                                       └─ the driver program's Java
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from airflow_dagsched.class_archives.spark_home import DRIVER_PYTHON, find_home_script, find_spark_home
from airflow_dagsched.launch.managers.short_java import LIGHT_COMPILER

HOME = "SPARK_HOME"
LAUNCHER_OPTIONS = "SPARK_LAUNCHER_OPTS"
DOWNLOADED = "spark-distribution"
"""A folder that ``find_spark_home.py`` looks at before PySpark's own."""


def find_hints(spark_submit: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables for ``spark_submit``, which would run the same in ``environment`` without them, only later.

    What is set there stays as it is.
    """
    home = _find_home(spark_submit, environment)
    hints = {LAUNCHER_OPTIONS: LIGHT_COMPILER, **({HOME: str(home)} if home is not None else {})}
    return {name: value for name, value in hints.items() if name not in environment}


def _find_home(spark_submit: Path, environment: Mapping[str, str]) -> Path | None:
    """What its Python would find; None where that is not sure, or where the script needs none."""
    script = find_home_script(spark_submit)
    # The script's Python is this one only where somebody says so.
    if script is None or (environment.get(DRIVER_PYTHON) or environment.get("PYSPARK_PYTHON")) != sys.executable:
        return None
    home = find_spark_home(spark_submit, environment)
    if home is None or not (home / "bin" / "spark-submit").is_file() or not (home / "jars").is_dir():
        return None
    return None if any((each / DOWNLOADED).is_dir() for each in (script.resolve().parent, home)) else home
