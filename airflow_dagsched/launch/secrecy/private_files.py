"""Files that say what runs, and folders that others must not write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from airflow_dagsched.errors import LaunchRefused

OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def write_file(path: Path, content: bytes, mode: int) -> None:
    """A new file with ``mode``, or less where the process's umask takes more away."""
    # O_EXCL: never through a link, or into a file, that somebody else has put there before.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def check_folder(folder: Path, work_dir: Path, group: str) -> None:
    """Raises :class:`LaunchRefused` where somebody else may write what a launch and its driver program go by, in
    ``folder``, somewhere below ``work_dir``.

    Folders above it may be its group's: several users of one group may share a work folder.
    """
    found = folder.lstat()  # of the name itself: a link may lead anywhere
    if found.st_uid != os.geteuid() or found.st_mode & OTHERS_MAY_WRITE or not stat.S_ISDIR(found.st_mode):
        raise LaunchRefused(
            group,
            f"others than this user may write {str(folder)!r}",
            "it says what a driver program runs: remove it, and see who may write the folders above",
        )
    # Who may write a folder may rename what is in it, and put something else in its place.
    for above in (each for each in folder.parents if each == work_dir or each.is_relative_to(work_dir)):
        mode = above.stat().st_mode
        # With the sticky bit, as /tmp has it, nobody can replace what is another's.
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise LaunchRefused(group, f"everybody may write {str(above)!r}", f"chmod o-w {above}")
