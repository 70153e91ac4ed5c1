"""Where a benchmark runs Airflow's pieces: a home folder of its own, a connection to Spark in this machine."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from airflow_dagsched.class_archives.make import Request, make_file, make_on_shelf, request_archive
from airflow_dagsched.class_archives.spark_home import locate_spark_submit
from airflow_dagsched.launch.managers.short_java import DRIVER, EXECUTOR, LIGHT_COMPILER, LIGHT_LOCAL

MASTER = "local[2]"
CACHE, SWITCH = "AIRFLOW__DAGSCHED__CACHE_DIR", "AIRFLOW__DAGSCHED__CLASS_ARCHIVE"
CONF = {"spark.driver.memory": "2g"}
"""The same for every way to run a case."""
PLAIN = {**CONF, DRIVER: "", EXECUTOR: ""}
"""Java as it comes: without what a launch task chooses for it, as a DAG of spark-submits runs today."""
LIGHT = {**CONF, DRIVER: LIGHT_LOCAL, EXECUTOR: ""}
"""What a launch task chooses for Java in short applications in this machine; a person may, too."""
LIGHT_REMOTE = {**CONF, DRIVER: LIGHT_COMPILER, EXECUTOR: LIGHT_COMPILER}
"""The same on a cluster."""


def make_archive() -> None:
    """Have an archive of classes, as a launch would leave one in the background: none shall come to be meanwhile."""
    why_not = make_on_shelf(_request_archive())
    print(f"archive of classes: {why_not or 'there'}", flush=True)


def make_executor_archive() -> str:
    """Have one for executors, which have Spark's jars alone, where a driver has a jar before them.

    Returns its path; empty where there can be none.
    """
    file = Path(os.environ[CACHE], "executor.jsa")
    why_not = make_file(_request_archive(), file)
    print(f"archive of executors' classes: {why_not or 'there'}", flush=True)
    return "" if why_not else str(file)


def _request_archive() -> Request:
    submit = locate_spark_submit()
    assert submit is not None
    return request_archive(Path(os.environ[CACHE]), submit, MASTER, {}, os.environ)


@contextmanager
def changed_environment(names: Mapping[str, str]) -> Iterator[None]:
    """The environment with other values, inside the block."""
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def enter(home: Path) -> None:
    """Point this process's Airflow to ``home``. To be called before Airflow is imported."""
    home.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": MASTER}),
        # Its own: no warm application of the user's is met, and none left to him.
        CACHE: str(home.parent / "cache"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    logging.disable(logging.WARNING)
