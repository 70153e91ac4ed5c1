"""``airflow dagsched ...`` as a shell sees it: the result alone on standard output, and an untouched database."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import pytest

from airflow_dagsched.provider.commands.actions import clean
from tests.switch.test_retention import StreamFiles

DAGS = {
    "shop.py": """
from airflow.sdk import dag, task
from airflow_dagsched import SparkDataflow

print("the author's own print")


@dag(schedule=None)
def shop():
    with SparkDataflow("sales", work_dir="{home}/work"):
        task.spark_step(task_id="orders")(lambda spark: spark.range(3))()


@dag(schedule=None)
def shops():
    for name in "north", "south":
        with SparkDataflow(name, work_dir="{home}/work"):
            task.spark_step(task_id="orders")(lambda spark: spark.range(3))()


shop()
shops()
""",
    "plain.py": "from airflow.sdk import DAG\n\nwith DAG('plain'):\n    pass\n",
    "broken.py": "from airflow.sdk import DAG\n\nraise ValueError('broken on purpose')\n",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Airflow of its own, its database made, with three DAG files that nobody has read yet."""
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    for name, text in DAGS.items():
        (home / "dags" / name).write_text(text.replace("{home}", str(home)))
    assert airflow(home, "db", "migrate").returncode == 0
    return home


def airflow(home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    own = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
    }
    command = [str(Path(sys.executable).with_name("airflow")), *arguments]
    return subprocess.run(
        command, env={**os.environ, **own, **settings}, cwd=home, capture_output=True, text=True, check=False
    )


def content(home: Path) -> list[str]:
    with sqlite3.connect(home / "airflow.db") as database:
        return list(database.iterdump())


@pytest.mark.airflow
def test_json_is_one_document_and_the_database_stays_as_it_is(home: Path) -> None:
    before = content(home)
    done = airflow(home, "dagsched", "plan", "shop", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert [group["steps"] for group in json.loads(done.stdout)["groups"]] == [["orders"]]
    assert "the author's own print" in done.stderr
    several = json.loads(airflow(home, "dagsched", "plan", "shops", "--format", "json").stdout)
    assert [plan["dataflow"] for plan in several] == ["north", "south"]
    assert content(home) == before


@pytest.mark.airflow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "shpo"), "DAG 'shpo': there is none of that id; did you mean 'shop'?; broken.py cannot be imported"),
        (("tune", "plain"), "DAG 'plain': has no dataflow"),
        (("plan", "{home}/dags/broken.py"), "cannot be imported: ValueError: broken on purpose"),
        (("plan", "shop", "--conn-id", "nowhere"), "no Airflow connection 'nowhere'"),
        (("clean", "{home}/typo"), "typo: is no folder"),
        (("clean", "--days", "-1"), "days: must be 0 or more, not -1"),
    ],
)
def test_a_mistake_is_one_line(home: Path, arguments: tuple[str, ...], words: str) -> None:
    """Exit code 2, nothing on standard output, nothing in the database."""
    before = content(home)
    done = airflow(home, "dagsched", *(each.replace("{home}", str(home)) for each in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert words in line
    assert content(home) == before


@pytest.mark.airflow
@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        (
            "RETENTION_DAYS",
            "abc",
            "Airflow's configuration: [dagsched] retention_days: must be a number of days, not 'abc'",
        ),
        ("RETENTION_DAYS", "-1", "days: must be 0 or more, not -1"),
        ("WORK_DIR", "s3a://b/x", "[dagsched] work_dir: must be an absolute path"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_line(home: Path, setting: str, value: str, words: str) -> None:
    done = airflow(home, "dagsched", "clean", "--dry-run", **{f"AIRFLOW__DAGSCHED__{setting}": value})
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert words in line


@pytest.mark.airflow
def test_clean_takes_a_folder_from_where_it_is_called(home: Path) -> None:
    (home / "work").mkdir(exist_ok=True)
    for name in ("work", f"file://{home}/work"):
        done = airflow(home, "dagsched", "clean", "--dry-run", name)
        assert (done.returncode, done.stdout) == (0, f"{home}/work: 0 path(s)\n"), done.stderr


def test_clean_removes_what_is_left_of_a_streams_old_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its private folder; the owner's stays, though it has not changed for as long."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = StreamFiles(tmp_path)
    clean(Namespace(work_dirs=[str(files.work_dir)], days=1, dry_run=False))
    left = sorted(each.name for each in (files.flow.folder / "epochs").iterdir())
    assert left == ["00000002"]
    assert (files.flow.name_epoch("00000002").private / "payload").exists()
