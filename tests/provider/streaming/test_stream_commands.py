"""``airflow dagsched stream ...``: orders are files, a switch is a run, and a paused DAG is told as one."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from argparse import Namespace
from contextlib import closing
from pathlib import Path

import pytest

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.provider.commands.streams import Stream, compare, find_streams, order_stream
from airflow_dagsched.provider.streaming.choose_epoch import read_wishes
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import read_orders
from airflow_dagsched.switch.places import name_flow
from airflow_dagsched.switch.records import Record
from tests.provider.streams.test_parse import CLICKS
from tests.switch.drawn import FIRST, make_aborted, make_batch, make_epoch, make_started, number

IN_ONE = """
import json, sys
from airflow.cli.cli_parser import get_parser

parser = get_parser()
for command in json.loads(sys.argv[1]):
    print("---", flush=True)
    given = parser.parse_args(command)
    try:
        given.func(given)
    except SystemExit as ended:
        print("ended with", ended.code, flush=True)
"""
"""Several commands in one process: each loads all of Airflow."""


def add(stream: Stream, *records: Record) -> None:
    log = FlowLog(stream.places.log)
    for record in records:
        log.append(lambda story, n, at, record=record: number((record,), n)[0])


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    return Stream("clicks", "clicks", name_flow(tmp_path / "work", "clicks", "clicks"))


def write_dag(folder: Path, source: str = CLICKS) -> Path:
    file = folder / "clicks.py"
    file.write_text(source.replace('mode="streaming"', f'mode="streaming", work_dir="{folder}/work"'))
    return file


def test_streams_are_found_by_what_their_file_declares(tmp_path: Path, stream: Stream) -> None:
    file = str(write_dag(tmp_path))
    assert find_streams(file) == find_streams(file, "clicks") == [stream]
    with pytest.raises(InvalidInput, match="has no stream 'sales'"):
        find_streams(file, "sales")


def test_a_stream_is_found_though_its_file_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    gone = Stream("gone_dag", "clicks", name_flow(tmp_path, "gone_dag", "clicks"))
    with pytest.raises(InvalidInput, match="there is none of that id"):
        find_streams("gone_dag")
    add(gone, *FIRST)
    assert find_streams("gone_dag") == [gone]


def test_a_stop_is_left_for_the_driver(stream: Stream) -> None:
    add(stream, *FIRST)
    folder = stream.places.name_leases(1)
    folder.mkdir(parents=True)
    (folder / "0000000001.json").write_text('{"expires": 1e18}')
    assert "stop ordered" in order_stream(stream, "stop", "ann@h1", "for the night")
    assert "was ordered before" in order_stream(stream, "stop", "ann@h1", "")
    assert read_orders(stream.places.name_epoch("00000001")) == {"stop": "for the night"}
    assert read_last(stream)["kind"] == "current"


def test_where_no_driver_is_left_the_command_does_what_it_can(stream: Stream) -> None:
    add(stream, *FIRST, make_epoch(2), make_started(2))
    order_stream(stream, "abort", "ann@h1", "wrong branch")
    assert (read_last(stream)["kind"], read_last(stream)["reason"]) == ("aborted", "ordered: wrong branch")
    order_stream(stream, "stop", "ann@h1", "")
    assert (read_last(stream)["kind"], read_last(stream)["epoch"]) == ("stopped", 1)
    for order in ("stop", "abort", "confirm"):
        with pytest.raises(InvalidInput, match=f"{order}: no "):
            order_stream(stream, order, "ann@h1", "")


def test_a_command_gives_nothing_up_for_want_of_time(stream: Stream) -> None:
    """It can't know how long the flow's settings allow."""
    add(stream, *FIRST, make_epoch(2, x_confirm="manual"), make_started(2), make_batch(2, 0, kept=0))
    order_stream(stream, "confirm", "ann@h1", "")
    assert read_last(stream)["kind"] == "batch"


def test_two_graphs_are_compared(tmp_path: Path, stream: Stream, capsys: pytest.CaptureFixture[str]) -> None:
    add(stream, *FIRST, make_epoch(2, x_confirm="manual"), make_started(2), make_batch(2, 0, kept=0))
    asked = {"dag": str(write_dag(tmp_path)), "flow": None, "step": None}
    compare(Namespace(**asked, format="text"))
    assert "out: epochs 1 and 2 have no window behind 1970-01-01 00:00:00 UTC" in capsys.readouterr().out
    compare(Namespace(**asked, format="json"))
    (found,) = json.loads(capsys.readouterr().out.splitlines()[-1])["queries"]
    assert (found["old"], found["new"], found["upto"]) == (1, 2, 0)
    add(stream, make_aborted(2))
    with pytest.raises(SystemExit, match="2"):
        compare(Namespace(**asked, format="text"))
    assert "nothing is compared: no graph is about to take over" in capsys.readouterr().err


def read_last(stream: Stream) -> dict[str, object]:
    return json.loads(max(stream.places.log.glob("*.json")).read_text())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "dags").mkdir()
    write_dag(tmp_path).rename(tmp_path / "dags" / "clicks.py")
    return tmp_path


def call(home: Path, *commands: list[str]) -> list[str]:
    """What each command prints."""
    own = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    code = [sys.executable, "-c", IN_ONE, json.dumps(commands)]
    done = subprocess.run(code, capture_output=True, text=True, check=True, env={**os.environ, **own}, cwd=home)
    return done.stdout.split("---\n")[1:]


def test_status_says_that_a_dag_is_paused_and_switch_makes_a_run(home: Path, stream: Stream) -> None:
    add(stream, *FIRST)
    of_stream = ["dagsched", "stream"]
    *_, before, made, _, after, listed = call(
        home,
        ["db", "migrate"],
        ["dags", "reserialize"],
        [*of_stream, "status", "clicks"],
        [*of_stream, "switch", "clicks", "--again", "--open"],
        ["dags", "unpause", "clicks", "--yes"],
        [*of_stream, "status", "clicks"],
        ["dags", "list-runs", "clicks", "--output", "json"],
    )
    assert "paused: neither switches nor restarts until `airflow dags unpause clicks`" in before
    assert "steady (one graph runs" in before
    assert made.startswith("run manual__")
    assert "paused" in made
    assert "paused" not in after
    (run,) = json.loads(listed[listed.index("[") :])
    assert run["run_id"] in made
    with closing(sqlite3.connect(home / "airflow.db")) as database:
        (conf,) = database.execute("select conf from dag_run").fetchone()
    assert read_wishes(json.loads(conf)) == {"again", "open"}
