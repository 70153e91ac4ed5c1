"""Units and tolerances that every part of the package shares."""

from __future__ import annotations

MIB = 1024 * 1024
"""Bytes of a MiB."""
DIGITS = 6
"""Seconds are rounded to the microsecond, loads likewise: so what is summed in another order is still equal."""
TOLERANCE = 1e-9
"""Sums of amounts, weights and costs in floating point may be off by so much."""
