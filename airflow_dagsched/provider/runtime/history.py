"""What a launch adds to the run history: what its steps and applications took."""

from __future__ import annotations

import fcntl
import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from airflow_dagsched.launch.history.learning import Ran, update_history
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.provider.spec.run_history import recall_history

log = logging.getLogger(__name__)


def record_applications(file: Path, connection: str, applications: Iterable[Ran], run: str = "") -> None:
    """Put what was measured in the run of that id into the history; runs that end at one moment follow one another.

    A history that cannot be written costs an estimate, never a run.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # A file of its own: a lock is on what is open, and the history itself is replaced.
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            draft = file.with_suffix(".new")
            draft.write_bytes(encode_value(update_history(recall_history(file), connection, applications, run)))
            draft.replace(file)
    except OSError as error:
        log.warning("the run history %s cannot be written: %s", file, error)


def keep_history(file: Path, folder: Path) -> Path:
    """The history as it was when the first launch of a run asked for it, in the run's ``folder``; the history itself
    where that cannot be written.
    """
    kept = folder / "history.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"history.{time.monotonic_ns()}.new"
        draft.write_bytes(encode_value(recall_history(file)))
        # Fails where there is one: of two launches that begin at one moment the first one's counts for both.
        with suppress(FileExistsError):
            kept.hardlink_to(draft)
        draft.unlink()
    except OSError as error:
        log.warning("the history cannot be kept for the run: %s", error)
        return file
    return kept
