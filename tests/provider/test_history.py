"""The history file: what a run measured is what the next one is planned with."""

from __future__ import annotations

from pathlib import Path

from airflow_dagsched.launch.events import StepDone
from airflow_dagsched.launch.learning import Ran
from airflow_dagsched.model.state import State
from airflow_dagsched.provider.history import recall, record


def test_runs_add_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "h" / "f.json"
    for step, seconds in (("a", 9.0), ("g", 2.0)):
        record(file, "spark", [Ran(20.0, 2, (StepDone(step, "success", seconds=seconds),), {step: 5.0})])
    known = recall(file)
    assert {name: seen.runtime_s for name, seen in known.measured.items()} == {"a": 9.0, "g": 2.0}
    assert known.connections["spark"].recent_start_s == (11.0, 18.0)


def test_a_torn_file_is_an_empty_history(tmp_path: Path) -> None:
    torn = tmp_path / "f.json"
    torn.write_text('{"measured": {"a"')
    assert recall(torn) == State()
