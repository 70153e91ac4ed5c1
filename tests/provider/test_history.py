"""The history file: what a run measured is what the next one is planned with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_dagsched.launch.history.learning import Ran
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.model.state import State
from airflow_dagsched.provider.runtime.history import record_applications
from airflow_dagsched.provider.spec.run_history import recall_history


def test_runs_add_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "h" / "f.json"
    for step, seconds in (("a", 9.0), ("g", 2.0)):
        record_applications(file, "spark", [Ran(20.0, 2, (StepDone(step, "success", seconds=seconds),), {step: 5.0})])
    known = recall_history(file)
    assert {name: seen.runtime_s for name, seen in known.measured.items()} == {"a": 9.0, "g": 2.0}
    assert known.connections["spark"].recent_start_s == (11.0, 18.0)


def test_a_torn_file_is_an_empty_history(tmp_path: Path) -> None:
    torn = tmp_path / "f.json"
    torn.write_text('{"measured": {"a"')
    assert recall_history(torn) == State()


def test_runs_that_end_at_one_moment_lose_nothing(tmp_path: Path) -> None:
    """Three runs of a backfill, twenty steps each."""
    file = tmp_path / "f.json"
    names = [[f"s{run}_{step}" for step in range(20)] for run in range(3)]

    def end(run: list[str]) -> None:
        for name in run:
            record_applications(file, "spark", [Ran(9.0, 2, (StepDone(name, "success", seconds=1.0),), {name: 5.0})])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(end, names))
    assert recall_history(file).measured.keys() == {name for run in names for name in run}


def test_a_history_that_cannot_be_written_fails_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "h").write_text("a file where a folder should be")
    record_applications(tmp_path / "h" / "f.json", "spark", [])
    assert "cannot be written" in caplog.text
