"""What one try of a launch task leaves for the next, in the work folder: Airflow's own stores die or live at the wrong
moments.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from airflow_dagsched.launch.escalation.levels import LEVELS
from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remembered:
    """The file's content."""

    level: int = 0
    """Index into ``LEVELS``."""
    emitted: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """How often the run had been cleared -> steps whose outlets were to emit an event then."""


class Memory:
    """Of one launch task in one run."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "memory.json"
        self._known = _read_file(self._file)

    @property
    def level(self) -> int:
        """Index into ``LEVELS`` for this try."""
        return self._known.level

    def emitted(self, clear_number: int) -> frozenset[str]:
        """Steps whose outlets emitted an event before the run was cleared for the ``clear_number``-th time.

        A try that another follows without a clear did not end well, whatever it wrote down: Airflow emits
        nothing for it.
        """
        return frozenset(step for at, steps in self._known.emitted.items() if at < clear_number for step in steps)

    def remember_level(self, level: int) -> None:
        """Write down the level of the next try."""
        self._write_file(replace(self._known, level=level))

    def note_good_end(self, steps: Iterable[str], clear_number: int) -> None:
        """Write down what emits its event now; whatever comes next starts from the plan again."""
        self._write_file(Remembered(emitted={**self._known.emitted, clear_number: tuple(sorted(steps))}))

    def _write_file(self, known: Remembered) -> None:
        self._known = known
        self._file.parent.mkdir(parents=True, exist_ok=True)
        # In one move: a try that is killed while it writes leaves what was there.
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(encode_plain(known)))
        fresh.replace(self._file)


def _read_file(file: Path) -> Remembered:
    """What cannot be read is forgotten: a level is climbed again, an event emitted again."""
    try:
        known = parse_dataclass(Remembered, file.read_text("utf-8"))
    except FileNotFoundError:
        return Remembered()
    except (OSError, ValueError) as error:
        log.warning("%s is forgotten: %s: %s", file, type(error).__name__, error)
        return Remembered()
    if known is None or not 0 <= known.level < len(LEVELS):
        log.warning("%s is forgotten: it holds something else than it should", file)
        return Remembered()
    return known
