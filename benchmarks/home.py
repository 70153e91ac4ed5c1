"""Where a benchmark runs Airflow's pieces: a home folder of its own, a connection to Spark in this machine."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from airflow_dagsched.class_archives.choose import choose_archive
from airflow_dagsched.class_archives.make import make_on_shelf, request_archive
from airflow_dagsched.class_archives.shelf import Shelf
from airflow_dagsched.class_archives.spark_home import locate_spark_submit
from airflow_dagsched.launch.class_archive.settings import give_driver
from airflow_dagsched.launch.managers.compiler import LIGHT_COMPILER
from airflow_dagsched.launch.secrecy.cache_folder import choose_cache_folder

MASTER = "local[2]"
JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
CONF = {"spark.driver.memory": "2g"}
"""The same for every way to run a case."""
PLAIN = {**CONF, JAVA_OPTIONS: ""}
"""Java as it comes: without what a launch task chooses for it, as a DAG of spark-submits runs today."""
LIGHT = {**CONF, JAVA_OPTIONS: LIGHT_COMPILER}
"""Java's quick compiler alone, as a launch task chooses it for short applications; a person may, too."""
SWITCH = "AIRFLOW__DAGSCHED__CLASS_ARCHIVE"


def make_archive() -> None:
    """Have an archive of classes, as a launch would leave one in the background: none shall come to be meanwhile."""
    submit = locate_spark_submit()
    assert submit is not None
    why_not = make_on_shelf(request_archive(choose_cache_folder(os.environ), submit, MASTER, {}, os.environ))
    print(f"archive of classes: {why_not or 'there'}", flush=True)


def give_archive(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings with the archive that a launch's driver would have."""
    submit, shelf = locate_spark_submit(), Shelf.of(choose_cache_folder(os.environ))
    assert submit is not None
    found = choose_archive(shelf, submit, MASTER, conf, os.environ)
    if found.kind is None or found.reason != "used":
        return dict(conf)
    return give_driver(conf, found.kind, found.detail)


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
