"""Kubernetes quantities: ``500m``, ``4``, ``16393244Ki``, ``2Gi``, ``1e9`` (Kubernetes API: "Quantity")."""

from __future__ import annotations

import re
from decimal import Decimal

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def parse_quantity(text: str) -> Decimal:
    """The number that ``text`` stands for; raises ``ValueError`` for what is no quantity."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity")
    # Exact: ten times 100m in binary fractions would not be a core.
    number, suffix = Decimal(match[1]), match[2] or ""
    return number * 1024 ** (_BINARY.index(suffix) + 1) if suffix in _BINARY else number.scaleb(_DECIMAL[suffix])
