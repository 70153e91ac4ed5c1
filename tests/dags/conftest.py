"""An Airflow home with an empty database, and a way to play a DAG of ``dags/`` in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demo.flights_data import prepare

CHECKOUT = Path(__file__).resolve().parents[2]
TELLING = re.compile(r"\[(?:warning|error) *\]|Error|tried again")
"""Of the lines that Airflow logs."""
Play = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Airflow's home; the examples write their tables to ``home/tables``."""
    return airflow_home(tmp_path_factory.mktemp("airflow"))


@pytest.fixture(scope="session")
def play(home: Path) -> Play:
    """``play(example, date, **environment)``: runs the DAG of an example, or of a file; tells how its tasks ended.

    ``dag``: its id, where the file has several.
    """

    def run(example: str | Path, date: str = "", *, dag: str = "", **env: str) -> dict[str, Any]:
        file = example if isinstance(example, Path) else CHECKOUT / "dags" / f"{example}.py"
        command = [sys.executable, "-m", "tests.dags.play", str(file), date, dag]
        done = subprocess.run(
            command,
            env={**environment(home, file.parent), **env},
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        # pytest shows it where a test fails: how a task ended says little.
        print("\n".join(line for line in done.stdout.splitlines() if TELLING.search(line)))
        return found

    return run


@pytest.fixture(scope="session")
def flights_data() -> Path:
    """The demo's input: made once, read only."""
    return prepare(CHECKOUT / ".home" / "data")


def airflow_home(folder: Path) -> Path:
    """The folder, with an empty metadata database in it."""
    migrate = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(migrate, env=environment(folder), check=True, capture_output=True)
    return folder


def environment(home: Path, dags: Path = CHECKOUT / "dags") -> dict[str, str]:
    """Of a process whose Airflow lives in ``home`` and whose Spark is local."""
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DAGSCHED__WORK_DIR": str(home / "dagsched"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }
