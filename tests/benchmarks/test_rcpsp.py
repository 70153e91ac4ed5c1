"""The benchmark of schedules, from a folder of files to its table and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.rcpsp import Found, main, table
from tests.benchmarks.drawn import SMALL, sm_text


def test_a_folder_is_scheduled_checked_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "sets" / "p4"
    folder.mkdir(parents=True)
    (folder / "p4_1.sm").write_text(sm_text(SMALL))
    (tmp_path / "best_known.json").write_text(json.dumps({"p4_1": {"ub": 4}}))
    assert main([str(tmp_path / "sets"), "--json", str(tmp_path / "out.json")]) == 0
    (found,) = json.loads((tmp_path / "out.json").read_text())
    assert found.pop("cpu_s") >= 0
    assert found == {
        "name": "p4_1",
        "set": "p4",
        "makespan": 4,
        "lower_bound": 4,
        "best_known": 4,
        "start_times": [0, 0, 0, 4],
        "verified": True,
    }
    assert "0.000%" in capsys.readouterr().out


def test_a_malformed_file_ends_it_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p1_1.sm").write_text("nothing")
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_table_has_a_line_for_each_set() -> None:
    one = Found("p1_1", "p", 11, 10, 10, (0,), 0.5, verified=True)
    other = Found("q1_1", "q", 9, 9, None, (0,), 0.25, verified=True)
    assert table([one, other]) == (
        "set       files  verified  proved  hits  mean gap   cpu s   most\n"
        "p             1         1       0     0   10.000%    0.50   0.50\n"
        "q             1         1       1     0         -    0.25   0.25"
    )
