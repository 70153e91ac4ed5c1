"""Spark's way of writing an amount of memory."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"k": 1 / 1024, "": 1.0, "m": 1.0, "g": 1024.0, "t": 1024.0**2}
"""In MiB; Spark takes a bare number of its processes' memory for MiB."""


def read_mib(text: str) -> float | None:
    """``text`` in MiB; None: no size, as a template is none.

    >>> read_mib("2g"), read_mib("512k"), read_mib("lots")
    (2048.0, 0.5, None)
    """
    found = _SIZE.fullmatch(text.strip())
    return float(found[1]) * _UNITS[found[2].lower()] if found else None
