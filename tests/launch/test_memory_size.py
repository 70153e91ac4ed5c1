"""Amounts of memory as Spark writes them."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.protocol.memory_size import read_mib


@pytest.mark.parametrize(
    ("told", "mib"),
    [
        ("1g", 1024.0), ("700m", 700.0), ("700M", 700.0), ("512", 512.0), ("2048k", 2.0), ("1gb", 1024.0),
        ("", None), ("x", None),
    ],
)  # fmt: skip
def test_sizes_are_read_as_spark_reads_them(told: str, mib: float | None) -> None:
    assert read_mib(told) == mib
