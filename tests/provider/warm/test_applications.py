"""Folders of warm applications: what somebody is at home in, and what is removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from airflow_dagsched.launch.warm.about import ABOUT, IDLE, OUTPUT
from airflow_dagsched.private_socket import listen_in
from airflow_dagsched.provider.warm.applications import BEGUN_WITHIN_S, choose_name, has_warm, list_applications


@pytest.fixture
def warm(tmp_path: Path) -> Path:
    """The folder of all of them."""
    made = tmp_path / "warm"
    made.mkdir(mode=0o700)
    return made


def put_folder(warm: Path, name: str = "", mode: int = 0o700, **files: str) -> Path:
    """A folder there, as old as one that nobody comes to any more."""
    folder = warm / (name or choose_name())
    folder.mkdir()
    for each, text in files.items():
        (folder / each.replace("_", ".")).write_text(text)
    folder.chmod(mode)
    make_old(folder)
    return folder


def make_old(folder: Path) -> None:
    before = time.time() - BEGUN_WITHIN_S - 1
    os.utime(folder, (before, before))


@pytest.mark.parametrize(("is_old", "is_listening", "stays"), [(0, 0, 1), (1, 0, 0), (0, 1, 1), (1, 1, 1)])
def test_a_folder_that_says_nothing_goes_once_it_is_old_and_nobody_listens(
    warm: Path, is_old: int, is_listening: int, stays: int
) -> None:
    """Whoever made it was killed before he wrote what it is for, or is of another version of this package."""
    folder = put_folder(warm)
    os.utime(folder)
    listener = listen_in(folder) if is_listening else None
    if is_old:
        make_old(folder)
    assert list(list_applications(warm)) == []
    assert folder.exists() == bool(stays)
    if listener is not None:
        listener.close()


def test_what_an_application_has_left_goes_with_its_folder(warm: Path) -> None:
    folder = put_folder(warm, **{ABOUT: "of another version", OUTPUT: "said", IDLE: ""})
    listen_in(folder).close()
    (folder / "socket.new").touch()
    (warm / "ended.log").write_text("why")
    assert not has_warm(warm, "spark_default")
    assert [path.name for path in warm.iterdir()] == ["ended.log"]


def test_a_folder_of_another_purpose_stays(warm: Path) -> None:
    """By its name, by who may look into it, or by what is in it."""
    elsewhere = put_folder(warm.parent, "elsewhere", output_log="")
    stays = [
        put_folder(warm, "customers", part="rows"),
        put_folder(warm, "0123abcd", 0o755, output_log=""),
        put_folder(warm, "4567abcd", output_log="", part="rows"),
        put_folder(warm, "89abcdef"),
    ]
    (stays[-1] / OUTPUT).mkdir()
    make_old(stays[-1])
    (warm / "cdef0123").symlink_to(elsewhere)
    assert list(list_applications(warm)) == []
    assert all(folder.exists() for folder in stays)
    assert len(list(stays[2].iterdir())) == 2, "as it was"
    assert (elsewhere / OUTPUT).exists()


@pytest.mark.parametrize("is_link", [True, False])
def test_nothing_is_removed_from_a_folder_that_is_not_this_user_s_alone(warm: Path, is_link: bool) -> None:
    """A cache folder may be one that has had a folder of this name for long."""
    folder, looked_at = put_folder(warm), warm
    if is_link:
        looked_at = warm.with_name("link")
        looked_at.symlink_to(warm)
    else:
        warm.chmod(0o755)
    assert list(list_applications(looked_at)) == []
    assert folder.exists()
    warm.chmod(0o700)
    assert list(list_applications(warm)) == []
    assert not folder.exists(), "it was one to remove"


def test_nothing_of_another_user_s_is_removed(warm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As this user, who made it, is to another one."""
    folder, mine = put_folder(warm), os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert list(list_applications(warm)) == []
    assert folder.exists()
