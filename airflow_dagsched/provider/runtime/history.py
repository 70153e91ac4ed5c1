"""The run history: what steps and applications took in the last runs, as a state file the planner reads."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.history.learning import Ran, update_history
from airflow_dagsched.model.codec import encode_value, read_file
from airflow_dagsched.model.state import State
from airflow_dagsched.provider.spec.work_dir import parse_local_root

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec

log = logging.getLogger(__name__)


def locate_history(flow: DataflowSpec) -> Path:
    """Where the history of a dataflow is kept: ``dagsched plan --state`` reads it too."""
    return parse_local_root(flow.work_dir) / "history" / flow.dag_id / f"{flow.name}.json"


def recall_history(file: Path) -> State:
    """The history, or an empty one; a torn or foreign file costs an estimate, never a run."""
    try:
        return read_file(State, file) if file.is_file() else State()
    except InvalidInput:
        return State()


def record_applications(file: Path, connection: str, applications: Iterable[Ran]) -> None:
    """Put what was measured in this run into the history; runs that end at one moment follow one another.

    A history that cannot be written costs an estimate, never a run.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # A file of its own: a lock is on what is open, and the history itself is replaced.
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            draft = file.with_suffix(".new")
            draft.write_bytes(encode_value(update_history(recall_history(file), connection, applications)))
            draft.replace(file)
    except OSError as error:
        log.warning("the run history %s cannot be written: %s", file, error)
