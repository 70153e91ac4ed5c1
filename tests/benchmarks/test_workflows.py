"""The benchmark of workflows, from a folder of dataflows to its table and JSON."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from airflow_dagsched.model.codec import encode_value
from benchmarks.workflows import main
from tests.plan.drawn import drawn


def test_six_ways_run_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    a(1) ══> b(8)         ours: c b on one worker, a d e f on the other; by longest path,
    c(3) d(3) e(3) f(3)   a b starts at once and the last of the others ends at 12
    """
    long = {"a": {"runtime_s": 1.0}, "b": {"runtime_s": 8.0}}
    flow = drawn("a == b", **long, **{name: {"runtime_s": 3.0} for name in "cdef"})
    folder = tmp_path / "flows"
    folder.mkdir()
    (folder / "drawn.json").write_bytes(encode_value(flow))
    assert main([str(folder), "--workers", "2", "--json", str(tmp_path / "out.json")]) == 0
    (found,) = json.loads((tmp_path / "out.json").read_text())
    others = {"b_level": 12, "heft": 12, "airflow_default": 12, "fifo": 14}
    assert found["makespan_s"] == {"ours": 11, "planned": 11, **others}
    assert found["lower_bound_s"] == 10.5
    assert found["verified"] is True
    assert sorted((run["task"], run["end_s"] - run["start_s"]) for run in found["schedule"]) == [
        ("a", 1), ("b", 8), ("c", 3), ("d", 3), ("e", 3), ("f", 3),
    ]  # fmt: skip
    assert "1 workflows" in capsys.readouterr().out


def test_no_worker_runs_two_tasks_at_once(tmp_path: Path) -> None:
    flow = drawn("a == b; a == c; b == d; c == d; e == d; f == g", **{name: {"runtime_s": 0.1} for name in "abcdef"})
    (tmp_path / "drawn.json").write_bytes(encode_value(flow))
    assert main([str(tmp_path), "--workers", "2", "--mb-s", "10", "--json", str(tmp_path / "out")]) == 0
    (found,) = json.loads((tmp_path / "out").read_text())
    for worker in (0, 1):
        spans = sorted((run["start_s"], run["end_s"]) for run in found["schedule"] if run["worker"] == worker)
        assert all(one[1] <= other[0] for one, other in pairwise(spans))


def test_a_malformed_dataflow_ends_it_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.json").write_text("{}")
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
