"""What spark-submit's scripts need not find out, for they are told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_dagsched.launch.managers.short_java import LIGHT_COMPILER
from airflow_dagsched.provider.submission.script_hints import DOWNLOADED, HOME, LAUNCHER_OPTIONS, find_hints
from airflow_dagsched.provider.submission.spark_submit import FollowedSubmit

SUBMIT = Path(sys.executable).with_name("spark-submit")
OWN_PYTHON = {"PYSPARK_DRIVER_PYTHON": sys.executable}


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (HOME, LAUNCHER_OPTIONS, "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)


def installed(folder: Path, text: str = "") -> Path:
    """A spark-submit with the file beside it that pip puts there."""
    script = folder / "spark-submit"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    script.with_name("find_spark_home.py").touch()
    return script


def test_home_is_what_the_script_finds() -> None:
    script = [sys.executable, str(SUBMIT.with_name("find_spark_home.py"))]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    for name in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"):
        assert find_hints(SUBMIT, {name: sys.executable}) == {
            HOME: printed.strip(),
            LAUNCHER_OPTIONS: LIGHT_COMPILER,
        }


@pytest.mark.parametrize(
    "environment",
    [
        {},  # the script asks the python3 on its path
        {"PYSPARK_PYTHON": "python3"},
        {"PYSPARK_DRIVER_PYTHON": "/elsewhere/python", "PYSPARK_PYTHON": sys.executable},
    ],
)
def test_of_another_python_nothing_is_known(environment: dict[str, str]) -> None:
    assert HOME not in find_hints(SUBMIT, environment)


def test_spark_that_needs_no_python_finds_its_home_itself(tmp_path: Path) -> None:
    (tmp_path / "spark-submit").touch()
    assert HOME not in find_hints(tmp_path / "spark-submit", OWN_PYTHON)


def test_downloaded_spark_comes_first(tmp_path: Path) -> None:
    """It is the script's matter which of them is whole."""
    submit = installed(tmp_path)
    assert HOME in find_hints(submit, OWN_PYTHON)
    (tmp_path / DOWNLOADED).mkdir()
    assert HOME not in find_hints(submit, OWN_PYTHON)


def test_what_is_set_stays() -> None:
    """An empty one, too: somebody wants no options."""
    assert find_hints(SUBMIT, {**OWN_PYTHON, HOME: "/opt/spark", LAUNCHER_OPTIONS: ""}) == {}


@pytest.mark.parametrize("theirs", [{}, {HOME: "/opt/spark", LAUNCHER_OPTIONS: "-Xint"}])
def test_they_reach_spark_submit(theirs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The author's own come before them."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    script = installed(tmp_path, f'echo "${HOME} ${LAUNCHER_OPTIONS}"')
    lines: list[str] = []
    hook = FollowedSubmit(spark_binary=str(script), env_vars={**OWN_PYTHON, **theirs})
    hook.on_line = lambda line: lines.append(line.strip())  # type: ignore[func-returns-value, method-assign, assignment]
    hook.submit("x.py")
    expected = {**find_hints(SUBMIT, {**os.environ, **OWN_PYTHON}), **theirs}
    assert lines == [f"{expected[HOME]} {expected[LAUNCHER_OPTIONS]}"]
