"""What a run measured is what the next one is planned with."""

from __future__ import annotations

from pathlib import Path

from airflow_dagsched.launch.events import StepDone
from airflow_dagsched.model.state import Measured, State
from airflow_dagsched.provider.history import recall, record


def test_a_job_of_three_steps_is_shared_out(tmp_path: Path) -> None:
    """9 s for a, b and c together: 3 s each; what failed or was reused teaches nothing."""
    file = tmp_path / "h" / "f.json"
    record(
        file, [StepDone("a", "success", seconds=9.0, bytes=5, fused=("b", "c")), StepDone("d", "failed", seconds=1.0)]
    )
    record(file, [StepDone("e", "reused", seconds=1.0), StepDone("g", "success", seconds=2.0)])
    assert recall(file).measured == {"a": Measured(runtime_s=3.0, bytes=5), "g": Measured(runtime_s=2.0)}


def test_a_torn_file_is_an_empty_history(tmp_path: Path) -> None:
    torn = tmp_path / "f.json"
    torn.write_text('{"measured": {"a"')
    assert recall(torn) == State()
