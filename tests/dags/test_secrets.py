"""A password of a connection, a variable and a setting: after a run, and while it runs, nobody else can read them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from tests.dags.conftest import CHECKOUT, airflow_home, environment

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]

FILE = Path(__file__).parent / "files" / "secretive.py"
PARTS = tuple(token_hex(6) for _ in range(5))
"""Of the secrets: however they are written, some of these would be seen. Nobody else has them on a command line."""
PASSWORD, TOKEN, KEY = f'{PARTS[0]} "{PARTS[1]}" @/{PARTS[2]}', f"{PARTS[3]}-und-3-more-words", f"/{PARTS[4]}+=="


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return airflow_home(tmp_path_factory.mktemp("secrets"))


@pytest.mark.parametrize("raises", ["no", "yes"])
def test_secrets_are_nowhere(home: Path, raises: str) -> None:
    """Steps get them; files, logs, XComs, Spark's event log, terminals and command lines do not."""
    (home / "tmp").mkdir(exist_ok=True)
    env = {
        **environment(home, FILE.parent),
        "AIRFLOW_CONN_SHOP_DB": json.dumps({"conn_type": "postgres", "host": "db", "password": PASSWORD}),
        "AIRFLOW_VAR_SHOP_TOKEN": TOKEN,
        "STORE_KEY": KEY,
        "RAISES": raises,
        "TMPDIR": str(home / "tmp"),
    }
    command = [sys.executable, "-m", "tests.dags.play", str(FILE)]
    with command_lines() as seen:
        done = subprocess.run(command, env=env, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    output = done.stdout + done.stderr
    assert found["tasks"]["shop.first"] == "success", output[-6000:]
    assert found["tasks"]["shop.second"] == ("failed" if raises == "yes" else "success"), output[-6000:]
    assert found["told"]["shop.second"] == (None if raises == "yes" else {"***": ["***", "***"]})
    assert ("RuntimeError: refused by *** and ***" in output) == (raises == "yes")
    assert ("/shop/***/till.py" in output) == (raises == "yes")
    assert "asked *** *** ***" in output
    assert told(output) == []
    assert [line for line in seen() if told(line)] == []
    assert any("SparkSubmit" in line and "--properties-file" in line for line in seen())
    assert list((home / "spark_events").iterdir())
    assert [str(file) for file in home.rglob("*") if file.is_file() and told(file.read_bytes().decode("latin1"))] == []


def told(text: str) -> list[str]:
    return [part for part in PARTS if part in text]


@contextmanager
def command_lines() -> Iterator[Callable[[], set[str]]]:
    """The command lines of all processes that run while the block does, as anybody sees them."""
    lines: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            lines.update(filter(None, map(command_line, Path("/proc").glob("[0-9]*/cmdline"))))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: lines
    finally:
        ended.set()
        thread.join()


def command_line(file: Path) -> str:
    """Empty if the process is gone."""
    try:
        return file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
