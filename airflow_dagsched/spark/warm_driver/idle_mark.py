"""Which applications of a user wait on a host: each one that does has a file in its folder that says so.

::

    warm/1f0c/idle   9:00      two may wait: 1f0c ends, though its time is not over
         77ab/idle   9:04
         c3d0/idle   9:05

Each looks at the others' and ends itself: nobody need be asked, and none waits for another.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from airflow_dagsched.launch.warm.about import IDLE
from airflow_dagsched.process_names import is_gone, name_process


class IdleMark:
    """Of the application whose folder it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self) -> None:
        """It waits from now on, if it does not already."""
        with suppress(OSError), (self._folder / IDLE).open("x", encoding="utf-8") as file:
            file.write(name_process(os.getpid()))

    def remove(self) -> None:
        """It does no longer."""
        (self._folder / IDLE).unlink(missing_ok=True)

    def count_later(self) -> int:
        """Applications that have begun to wait after this one, and wait still."""
        mine = _read_time(self._folder)
        if mine is None:
            return 0
        try:
            others = [each for each in self._folder.parent.iterdir() if each != self._folder]
        except OSError:
            return 0
        later = [each for each in others if (its := _read_time(each)) is not None and its > mine]
        return sum(not _is_left(each) for each in later)


def _read_time(folder: Path) -> tuple[int, str] | None:
    """When the application there began to wait, with its name, as no two are to be equal; None: it doesn't."""
    try:
        return (folder / IDLE).stat().st_mtime_ns, folder.name
    except OSError:
        return None


def _is_left(folder: Path) -> bool:
    """Whether whoever put its mark there is gone."""
    try:
        return is_gone((folder / IDLE).read_text("utf-8"))
    except OSError:
        return True
