"""Who may write an archive may run code: each way in is seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_dagsched.class_archives.choose import choose_archive
from airflow_dagsched.launch.secrecy.trust import find_stranger
from tests.class_archives.hosts import PlayedHost


@pytest.fixture
def host(tmp_path: Path) -> PlayedHost:
    found = PlayedHost(tmp_path)
    found.put_archive()
    assert choose(found) == "used"
    return found


def choose(host: PlayedHost) -> str:
    return choose_archive(host.shelf, host.submit, "yarn", {}, host.environment).reason


@pytest.mark.parametrize("mode", [0o722, 0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write(host: PlayedHost, mode: int) -> None:
    host.shelf.folder.chmod(mode)
    assert choose(host) == "unsafe"


@pytest.mark.parametrize("mode", [0o620, 0o602])
@pytest.mark.parametrize("suffix", [".jsa", ".json"])
def test_a_file_that_others_may_write(host: PlayedHost, mode: int, suffix: str) -> None:
    (file,) = host.shelf.folder.glob(f"*{suffix}")
    file.chmod(mode)
    assert choose(host) == "unsafe"


def test_a_link_in_the_place_of_the_archive(host: PlayedHost) -> None:
    (file,) = host.shelf.folder.glob("*.jsa")
    file.rename(host.folder / "elsewhere.jsa")
    file.symlink_to(host.folder / "elsewhere.jsa")
    assert choose(host) == "unsafe"


def test_a_link_in_the_place_of_its_folder(host: PlayedHost) -> None:
    host.shelf.folder.rename(host.folder / "elsewhere")
    host.shelf.folder.symlink_to(host.folder / "elsewhere")
    assert choose(host) == "unsafe"


def test_a_folder_above_that_everybody_may_write(host: PlayedHost) -> None:
    """They could put another one in its place; with the sticky bit they can't."""
    host.shelf.folder.parent.chmod(0o777)
    assert choose(host) == "unsafe"
    host.shelf.folder.parent.chmod(0o1777)
    assert choose(host) == "used"


def test_a_folder_that_a_link_above_leads_through(host: PlayedHost) -> None:
    """What counts is where it is, as well as what it is called."""
    real = host.folder / "real"
    real.mkdir()
    host.shelf.folder.parent.rename(real / "cache")
    host.shelf.folder.parent.symlink_to(real / "cache")
    assert choose(host) == "used"
    real.chmod(0o777)
    assert choose(host) == "unsafe"


def test_no_regular_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "no regular file" in find_stranger(tmp_path / "folder")


def test_what_belongs_to_somebody_else(host: PlayedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """As this user, who made it, is to another one."""
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert choose(host) == "unsafe"


def test_a_file_that_is_gone_is_made_again(host: PlayedHost) -> None:
    (file,) = host.shelf.folder.glob("*.jsa")
    file.unlink()
    assert choose(host) == "spoiled"
