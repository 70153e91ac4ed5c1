"""The claims of one run, in its folder: read and written by all its launch tasks, one after another."""

from __future__ import annotations

import fcntl
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from airflow_dagsched.launch.moves.claims import Claims
from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass

log = logging.getLogger(__name__)


class ClaimsFile:
    """``moves.json`` of a run. Where it can't be written nobody takes anything: each launch task runs its own steps."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "moves.json"

    def read(self) -> Claims:
        """As they are now; a torn or foreign file holds none."""
        with suppress(OSError, ValueError):
            return parse_dataclass(Claims, self._file.read_text("utf-8")) or Claims()
        return Claims()

    def change(self, make: Callable[[Claims], Claims]) -> Claims:
        """The claims after ``make``, which nobody changed meanwhile; as they were where they can't be written."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            # A file of its own: a lock is on what is open, and the claims themselves are replaced.
            with self._file.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                before = self.read()
                after = make(before)
                if after != before:
                    self._write(after)
                return after
        except OSError as error:
            log.warning("what other launch tasks run can't be written down: %s", error)
            return self.read()

    def _write(self, claims: Claims) -> None:
        # In one move: a launch task that is killed while it writes leaves what was there.
        draft = self._file.with_suffix(".new")
        draft.write_text(json.dumps(encode_plain(claims), sort_keys=True))
        draft.replace(self._file)
