"""The Spark and the Java that a spark-submit would run, told as its own scripts tell them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

DRIVER_PYTHON = "PYSPARK_DRIVER_PYTHON"


def locate_spark_submit() -> Path | None:
    """The ``spark-submit`` on the path, else beside this Python; None where there is none."""
    # Airflow's services often run without their environment's ``bin`` on the path.
    beside = Path(sys.executable).with_name("spark-submit")
    found = shutil.which("spark-submit") or (beside if beside.exists() else None)
    return Path(found) if found else None


def find_home_script(spark_submit: Path) -> Path | None:
    """The Python program that ``spark_submit`` has look for its Spark; None where it needs none."""
    # Only the spark-submit that pip installs has this file beside it.
    script = spark_submit.with_name("find_spark_home.py")
    return script if script.is_file() else None


def find_spark_home(spark_submit: Path, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where ``spark_submit`` finds its Spark, as its own script ``find-spark-home`` goes about it."""
    if home := environment.get("SPARK_HOME"):  # as find-spark-home: it counts before all else
        return Path(home)
    if find_home_script(spark_submit) is None:
        return spark_submit.parent.parent
    if environment.get(DRIVER_PYTHON, sys.executable) != sys.executable:
        return None  # the PySpark of another Python
    found = find_spec("pyspark")
    return Path(found.origin).parent if found is not None and found.origin else None


def find_java(environment: Mapping[str, str]) -> Path | None:
    """The Java program that ``spark-class`` runs, links followed; None where there is none."""
    home = environment.get("JAVA_HOME")
    named = str(Path(home, "bin", "java")) if home else shutil.which("java", path=environment.get("PATH"))
    found = Path(named).resolve() if named else None
    return found if found is not None and found.is_file() else None
