"""``dagsched stream status`` and ``log``: what they say of a flow."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_dagsched.cli import main
from airflow_dagsched.switch.log.compaction import compact_log
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import place_order, write_ended, write_refused, write_sign
from airflow_dagsched.switch.places import FlowPlaces, name_flow
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.signs import Ended, Refused, Sign
from tests.switch.checking.test_check_log import make_good, write
from tests.switch.checking.test_check_log import number as renumber
from tests.switch.drawn import (
    FIRST,
    make_aborted,
    make_batch,
    make_current,
    make_drained,
    make_epoch,
    make_fence,
    make_started,
    make_stopped,
    number,
)

SWITCH: tuple[Record, ...] = (
    *FIRST,
    make_epoch(2),
    make_started(2),
    make_batch(2, 0),
    make_batch(1, 1, 10, 20, watermark=25.0),
    make_fence(1, 20),
    make_batch(1, 2, watermark=30.0),
    make_drained(1),
    make_stopped(1),
    make_current(2),
    make_epoch(3, x_after=2),
    make_aborted(3),
)


BEGIN, TEN, TWENTY, END = (f"1970-01-01 00:00:{second} UTC" for second in ("00", "10", "20", "25"))
BATCH = "out: batch 7, 0.25 s a batch, trigger 2 s"


@pytest.fixture
def flow(tmp_path: Path) -> FlowPlaces:
    places = name_flow(tmp_path, "dag", "flow")
    log = FlowLog(places.log, clock=lambda: 100.0)
    for each in SWITCH:
        log.append(lambda story, n, at, each=each: replace(number((each,), n)[0], at=at))  # type: ignore[misc]
    return places


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["stream", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_each_record_is_a_sentence(flow: FlowPlaces, capsys: pytest.CaptureFixture[str]):
    lines = run(capsys, "log", str(flow.folder))
    assert [line.split("UTC  ", 1)[1] for line in lines] == [
        "epoch 1 is asked for by run run 1: replay",
        "epoch 1 has started as app 1",
        "epoch 1, out, batch 0: no window, 0 of 0 rows in the table, watermark 1970-01-01 00:00:00 UTC",
        "epoch 1 is the owner",
        "epoch 2 is asked for by run run 2: replay",
        "epoch 2 has started as app 2",
        "epoch 2, out, batch 0: no window, 0 of 0 rows in the table, watermark 1970-01-01 00:00:00 UTC",
        f"epoch 1, out, batch 1: windows {TEN} to {TWENTY}, 2 of 2 rows in the table, watermark {END}",
        "windows behind 1970-01-01 00:00:20 UTC are epoch 2's, up to there epoch 1's",
        "epoch 1, out, batch 2: no window, 0 of 0 rows in the table, watermark 1970-01-01 00:00:30 UTC",
        "epoch 1 has emitted all windows that are its own",
        "epoch 1 has stopped: replaced",
        "epoch 2 is the owner",
        "epoch 3 is asked for by run run 3: replay",
        "epoch 3 is given up: no executors",
    ]
    assert lines[0].split()[:4] == ["1", "1970-01-01", "00:01:40", "UTC"]


def test_records_are_printed_as_they_are(flow: FlowPlaces, capsys: pytest.CaptureFixture[str]):
    lines = run(capsys, "log", str(flow.log), "--format", "json")
    assert [json.loads(line) for line in lines] == [json.loads(each.read_text()) for each in sorted(flow.log.iterdir())]


def test_the_status_says_who_owns_what_and_who_runs(flow: FlowPlaces, capsys: pytest.CaptureFixture[str]):
    now = time.time()
    sign = Sign(2, "app 2", now - 1, "idle", {"out": 7}, 12.5, 0.25, 2.0, 25.0, late=3, waits_for="no rows come")
    write_sign(flow.name_epoch("00000002"), sign)
    lines = run(capsys, "status", str(flow.folder))
    assert lines[0].startswith("after record 15: steady")
    assert "  epoch 2 of run run 2: owner, started as app 2" in lines
    assert lines[-2:] == [
        f"driver of epoch 2: idle, {BATCH}, 12.5 rows/s, watermark {END}, 3 late rows, no rows come",
        "no driver of epoch 2 runs",
    ]
    write_sign(flow.name_epoch("00000002"), replace(sign, at=now - 1000))
    assert "silent for 100" in run(capsys, "status", str(flow.folder))[-2]
    told = json.loads("\n".join(run(capsys, "status", str(flow.folder), "--format", "json")))
    assert told["drivers"]["2"]["late"] == 3
    del told["drivers"]
    assert told == {
        "state": "steady", "last": 15, "owner": 2, "successor": None, "lost": [2], "waits_for": [], "ended": {},
        "orders": {}, "refused": None,
    }  # fmt: skip
    write_refused(flow, Refused("code 3", "run 3", now, "no Java"))
    assert run(capsys, "status", str(flow.folder))[-1].startswith("refused, as run run 3 found: no Java; not asked for")


def test_the_status_says_what_is_ordered_and_how_a_lost_driver_ended(
    flow: FlowPlaces, capsys: pytest.CaptureFixture[str]
):
    places = flow.name_epoch("00000002")
    place_order(places, "stop", "ann", 20.0, "for the night")
    write_sign(places, Sign(2, "app 2", 1.0, "running", state_bytes=2**21, behind_rows=40, behind_s=7.5))
    write_ended(places, Ended(1, "author", 25.0, step="out", message="no such column"))
    sign, *lines = run(capsys, "status", str(flow.folder))[-4:]
    assert sign.endswith("2.0 MiB of state, 40 rows behind, 7.5 s of event time behind")
    assert lines == [
        "no driver of epoch 2 runs",
        f"the last driver of epoch 2 failed in step 'out' at {END}: no such column",
        "ordered of epoch 2: stop, for the night",
    ]
    write_ended(places, Ended(0, None, 25.0))
    assert f"the last driver of epoch 2 ended as it should at {END}" in run(capsys, "status", str(flow.folder))
    told = json.loads("\n".join(run(capsys, "status", str(flow.folder), "--format", "json")))
    assert (told["orders"], told["ended"]["2"]["code"]) == ({"2": {"stop": "for the night"}}, 0)


def test_the_status_says_what_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    places = name_flow(tmp_path, "dag", "flow")
    log = FlowLog(places.log)
    for each in SWITCH[:7]:
        log.append(lambda story, n, at, each=each: replace(number((each,), n)[0], at=at))  # type: ignore[misc]
    log.append(lambda story, n, at: replace(number((make_batch(1, 1, 10, 20, watermark=25.0),), n)[0], at=at))
    assert run(capsys, "status", str(places.folder))[-1] == (
        "waits: epoch 2 is behind: until its watermark is 1970-01-01 00:00:25 UTC"
    )


@pytest.mark.parametrize("command", ["log", "status"])
def test_a_damaged_log_and_no_log_are_bad_input(flow: FlowPlaces, command: str, capsys: pytest.CaptureFixture[str]):
    (flow.log / "0000000003.json").write_text("")
    assert main(["stream", command, str(flow.folder)]) == 2
    assert "0000000003.json" in capsys.readouterr().err
    assert main(["stream", command, str(flow.folder / "none")]) == 2
    assert "is no folder of a flow" in capsys.readouterr().err
    assert main(["stream", command, str(flow.folder.parent)]) == 2
    assert capsys.readouterr().err.endswith("holds no record of a log\n")


@pytest.mark.parametrize("command", ["log", "status", "check"])
def test_a_record_that_cannot_be_read_is_named(flow: FlowPlaces, command: str, capsys: pytest.CaptureFixture[str]):
    path = flow.log / "0000000003.json"
    path.unlink()
    path.mkdir()
    assert main(["stream", command, str(flow.folder)]) == 2
    assert capsys.readouterr() == ("", f"{path}: cannot be read: Is a directory\n")


@pytest.mark.parametrize("command", ["log", "status"])
def test_a_snapshot_that_lacks_an_epoch_is_bad_input(
    flow: FlowPlaces, command: str, capsys: pytest.CaptureFixture[str]
):
    compact_log(flow.log, 2)
    (path,) = flow.log.glob("snapshot-*")
    path.write_text(json.dumps([each for each in json.loads(path.read_text()) if each["n"] != 5]))
    assert main(["stream", command, str(flow.folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path}: has record 6 of epoch 2, and none that asks for that epoch" in line


def test_a_log_without_any_of_our_own_keys_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Those that begin with ``x_`` may be missing: after each record the status is had."""
    for record in make_good():
        write(tmp_path / "log", [record])
        status = run(capsys, "status", str(tmp_path))
    assert len(run(capsys, "log", str(tmp_path))) == len(make_good())
    assert status[0].startswith("after record 14: steady")
    assert "    up to window 1970-01-01 00:00:40 UTC, then epoch 2" in status


@pytest.mark.parametrize("says", [{"x_overlap": "cold"}, {"x_overlap": "sequential"}, {"channel": "carry"}])
def test_nor_does_a_switch_of_another_kind_need_them(
    tmp_path: Path, says: dict[str, str], capsys: pytest.CaptureFixture[str]
):
    stop = [{"kind": "stopped", "epoch": 1, "reason": "lost"}] if "cold" in says.values() else []
    started = [*make_good()[:4], *stop, {**make_good()[4], **says}]
    write(tmp_path / "log", renumber(started))
    assert "  epoch 2 of run r: successor, not started" in run(capsys, "status", str(tmp_path))
