"""Small files that come whole or not at all leave nothing behind where they don't come."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airflow_dagsched.exclusive import create_exclusive, replace_text

LEAST = 1 << 16
"""Bytes that a file may have while the disk is full: what pytest itself prints goes on."""


@contextmanager
def fill_disk() -> Iterator[None]:
    """No file of this process can get longer than it may, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LEAST, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("write", [create_exclusive, replace_text])
def test_a_full_disk_leaves_no_drafts(tmp_path: Path, write: Callable[[Path, str], object]):
    """It is tried again and again, for as long as the disk is full."""
    for _ in range(3):
        with fill_disk(), pytest.raises(OSError, match="too large"):
            write(tmp_path / "file", "x" * 2 * LEAST)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_can_not_be_replaced_leaves_no_draft(tmp_path: Path):
    (tmp_path / "taken" / "within").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        replace_text(tmp_path / "taken", "text")
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]
