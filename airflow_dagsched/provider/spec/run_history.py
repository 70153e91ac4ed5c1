"""Where the run history of a dataflow is, and what it says: a state file that the planner reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.codec import read_file
from airflow_dagsched.model.state import State
from airflow_dagsched.provider.spec.work_dir import parse_local_root

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec


def locate_history(flow: DataflowSpec) -> Path:
    """Where the history of a dataflow is kept: ``dagsched plan --state`` reads it too."""
    return parse_local_root(flow.work_dir) / "history" / flow.dag_id / f"{flow.name}.json"


def recall_history(file: Path) -> State:
    """The history, or an empty one; a torn or foreign file costs an estimate, never a run."""
    try:
        return read_file(State, file) if file.is_file() else State()
    except InvalidInput:
        return State()
