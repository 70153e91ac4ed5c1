"""Who may write what a launch goes by."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.secrecy.private_files import check_folder, write_file
from airflow_dagsched.provider.runtime.folders import make_own_folder


@pytest.fixture(autouse=True)
def _shared_by_the_group() -> Iterator[None]:
    """As where several users of a group run Airflow."""
    before = os.umask(0o002)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_above_are_the_groups_but_not_this(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "dag" / "0-1"
    assert make_own_folder(folder, "launch") == folder
    check_folder(folder, tmp_path, "launch")
    assert (mode(folder), mode(folder.parent)) == (0o755, 0o775)
    write_file(folder / "manifest.json", b"{}", 0o644)
    write_file(folder / "payload", b"", 0o600)
    assert [mode(folder / name) for name in ("manifest.json", "payload")] == [0o644, 0o600]


@pytest.mark.parametrize("bits", [0o775, 0o757, 0o777])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, bits: int) -> None:
    folder = tmp_path / "runs" / "0-1"
    folder.mkdir(parents=True)
    folder.chmod(bits)
    with pytest.raises(LaunchRefused, match=r"^launch: others than this user may write '.*/runs/0-1' \(.*remove it"):
        check_folder(folder, tmp_path, "launch")


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / "0-1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LaunchRefused, match="others than this user"):
        check_folder(tmp_path / "0-1", tmp_path, "launch")


def test_a_work_folder_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    """Unless, as in /tmp, nobody can remove what is another's."""
    work = tmp_path / "work"
    work.mkdir()
    work.chmod(0o777)
    with pytest.raises(LaunchRefused, match=r"launch: everybody may write '.*/work' \(chmod o-w .*/work\)"):
        check_folder(make_own_folder(work / "runs" / "0-1", "launch"), work, "launch")
    work.chmod(0o1777)
    check_folder(make_own_folder(work / "runs" / "0-2", "launch"), work, "launch")
