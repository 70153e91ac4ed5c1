"""Drivers and Python workers take PySpark compiled, as it is installed, where it is the Spark's own version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from airflow_dagsched.spark.python_path import prefer_compiled

HOME = Path(pyspark.__file__).parent
SITE = str(HOME.parent)
ZIPS = sorted(str(file) for file in (HOME / "python" / "lib").glob("*.zip"))
CHECKOUT = Path(__file__).parents[2]
PROGRAMS = ("driver", "stream_driver", "training", "warm_driver")


def settle(path: list[str], home: Path = HOME) -> list[str]:
    prefer_compiled(path, {"SPARK_HOME": str(home)})
    return path


def test_the_zips_go_where_the_same_is_installed() -> None:
    """And what is installed stays where it was, behind the author's modules and Python's."""
    assert len(ZIPS) == 2
    assert settle([*ZIPS, "/bundle", "/lib/python", SITE]) == ["/bundle", "/lib/python", SITE]


def test_they_stay_where_nothing_is_installed() -> None:
    assert settle([*ZIPS, "/bundle"]) == [*ZIPS, "/bundle"]


def unpack(folder: Path, version: str) -> list[str]:
    """A Spark as it is downloaded, whose Python says ``version``, of jars 4.2.1; its zip, on a path."""
    for name in ("jars/spark-core_2.13-4.2.1.jar", "python/lib/pyspark.zip", "python/pyspark/version.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f'__version__: str = "{version}"\n')
    return ["/author", str(folder / "python" / "lib" / "pyspark.zip"), "/bundle"]


def test_a_downloaded_spark_has_it_beside_its_zips(tmp_path: Path) -> None:
    assert settle(unpack(tmp_path, "4.2.1"), tmp_path) == ["/author", str(tmp_path / "python"), "/bundle"]


def test_another_version_is_not_taken(tmp_path: Path) -> None:
    path = unpack(tmp_path, "4.2.0")
    assert settle(path[:], tmp_path) == path


def test_without_a_spark_home_nothing_changes() -> None:
    path = [*ZIPS, SITE]
    prefer_compiled(path, {})
    assert path == [*ZIPS, SITE]


def run_python(*arguments: str) -> str:
    """What Python says of its imports where spark-submit has put the zips first."""
    environment = {**os.environ, "SPARK_HOME": str(HOME), "PYTHONPATH": os.pathsep.join([*ZIPS, str(CHECKOUT)])}
    done = subprocess.run(
        [sys.executable, "-v", *arguments], check=False, env=environment, stdin=subprocess.DEVNULL, capture_output=True
    )
    return done.stderr.decode(errors="replace")


@pytest.mark.parametrize("program", [f"spark/{each}/main.py" for each in PROGRAMS])
def test_each_program_loads_it_compiled(program: str) -> None:
    """That it then lacks its arguments is no matter here."""
    said = run_python(str(CHECKOUT / "airflow_dagsched" / program))
    assert f"{SITE}/pyspark/__pycache__" in said
    assert "pyspark.zip/pyspark" not in said


def test_python_workers_are_forked_by_it() -> None:
    """Started as Spark starts it, it ends when nobody is there to talk to."""
    said = run_python("-m", "airflow_dagsched.spark.worker_daemon", "pyspark.worker")
    assert f"{SITE}/pyspark/__pycache__/daemon." in said
    assert "pyspark.zip/pyspark" not in said
