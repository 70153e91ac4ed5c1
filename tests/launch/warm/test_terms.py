"""Times as authors write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_dagsched.launch.warm.terms import read_duration


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("10 minutes", 600.0), ("90 s", 90.0), ("1 hour", 3600.0), ("1.5 h", 5400.0), ("2min", 120.0),
        ("45 Seconds", 45.0),
        (timedelta(minutes=5), 300.0), (30, 30.0), (0, 0.0), ("", 0.0), (None, 0.0), (False, 0.0),
    ],
)  # fmt: skip
def test_a_time_is_read(told: Any, seconds: float) -> None:
    assert read_duration(told) == seconds


@pytest.mark.parametrize(
    "told", ["ten minutes", "10", "-1 s", "2 days", -1, True, [], timedelta(days=2), "10 minutes or so"]
)
def test_what_is_no_time_is_refused(told: Any) -> None:
    with pytest.raises(ValueError, match=r"a time is written as|stays for"):
        read_duration(told)
