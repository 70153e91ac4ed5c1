"""Who may write a file: of an archive of classes that is who may run code in every driver."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from airflow_dagsched.launch.secrecy.private_files import OTHERS_MAY_WRITE

ROOT = 0


def find_stranger(file: Path) -> str:
    """What lets others than this user write ``file``, an absolute path; empty if nothing does.

    The file and its folder are this user's own, and no links. Folders and links above are this user's or root's, and
    written by no one else: who may write a folder may put something else in the place of what is in it.
    Raises ``OSError`` for a file that is not there.
    """
    return find_strange_file(file) or find_strange_folder(file.parent)


def find_strange_file(file: Path) -> str:
    """The same of the file alone."""
    found = file.lstat()
    if not stat.S_ISREG(found.st_mode):
        return f"{file} is no regular file"
    return _find_other_writer(file, found)


def find_strange_folder(folder: Path) -> str:
    """The same of ``folder``, and so of each name in it."""
    return _find_other_owner(folder) or find_stranger_above(folder)


def find_stranger_above(path: Path) -> str:
    """What lets others put something else in the place of ``path``, an absolute one; empty if nothing does."""
    return next(filter(None, map(_find_strange_parent, list_parents(path))), "")


def list_parents(folder: Path) -> Iterator[Path]:
    """Folders and links above ``folder``, by its name and by where links lead, each once."""
    resolved = folder.parent.resolve()
    yield from dict.fromkeys((*folder.parents, resolved, *resolved.parents))


def _find_other_owner(folder: Path) -> str:
    found = folder.lstat()  # of the name itself: a link may lead anywhere
    return _find_other_writer(folder, found) if stat.S_ISDIR(found.st_mode) else f"{folder} is no folder, but a link"


def _find_other_writer(path: Path, found: os.stat_result) -> str:
    if found.st_uid != os.geteuid():
        return f"{path} belongs to another user"
    return f"others may write {path}" if found.st_mode & OTHERS_MAY_WRITE else ""


def _find_strange_parent(path: Path) -> str:
    found = path.lstat()
    if found.st_uid not in (ROOT, os.geteuid()):
        return f"{path} belongs to another user"
    if stat.S_ISLNK(found.st_mode):  # nobody's mode counts: its folder's does, which is looked at, too
        return ""
    # With the sticky bit, as /tmp has it, nobody can replace what is another's. Root's group is root.
    writers = stat.S_IWOTH if found.st_gid == ROOT else OTHERS_MAY_WRITE
    return f"others may write {path}" if found.st_mode & writers and not found.st_mode & stat.S_ISVTX else ""
