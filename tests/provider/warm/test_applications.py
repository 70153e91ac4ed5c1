"""Folders of warm applications: what somebody is at home in, and what is removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from airflow_dagsched.private_socket import listen_in
from airflow_dagsched.provider.warm.applications import BEGUN_WITHIN_S, list_applications


@pytest.mark.parametrize(("is_old", "is_listening", "stays"), [(0, 0, 1), (1, 0, 0), (0, 1, 1), (1, 1, 1)])
def test_a_folder_that_says_nothing_goes_once_it_is_old_and_nobody_listens(
    tmp_path: Path, is_old: int, is_listening: int, stays: int
) -> None:
    """Whoever made it was killed before he wrote what it is for, or is of another version of this package."""
    folder = tmp_path / "begun"
    folder.mkdir(mode=0o700)
    listener = listen_in(folder) if is_listening else None
    if is_old:
        before = time.time() - BEGUN_WITHIN_S - 1
        os.utime(folder, (before, before))
    assert list(list_applications(tmp_path)) == []
    assert folder.exists() == bool(stays)
    if listener is not None:
        listener.close()
