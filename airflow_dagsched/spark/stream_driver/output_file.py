"""What the driver prints goes to a file that whoever started it has opened: kept short from within.

It was opened to append, so where it is made empty both Python and Java go on at its new end.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

from airflow_dagsched.launch.secrecy.masking import Masking

LONGEST = 8 * 1024 * 1024
"""Bytes; twice as many are kept at most."""


class MaskedFormatter(logging.Formatter):
    """Of what Python logs, tracebacks included: libraries log what authors raise."""

    def __init__(self, masking: Masking) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._masking = masking

    def format(self, record: logging.LogRecord) -> str:
        """The lines of the record, without secrets."""
        return self._masking.text(super().format(record))


def rotate_output(path: Path, longest: int = LONGEST) -> None:
    """Put what was printed aside, in place of what was put aside before, if it is too long."""
    with suppress(FileNotFoundError):
        if path.stat().st_size <= longest:
            return
        with path.open("rb") as file:
            file.seek(-longest, os.SEEK_END)
            tail = file.read(longest)
        path.with_name(f"{path.name}.1").write_bytes(tail)
        # Lines that come between the two are lost: nobody can be asked to wait.
        os.truncate(path, 0)
