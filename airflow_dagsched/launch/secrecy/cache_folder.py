"""The user's private cache folder: who can write what is there can run code, so nobody else may."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from airflow_dagsched.launch.secrecy.trust import find_stranger_above

OWNER_ONLY = 0o700
NAME = "dagsched"


class NotPrivate(OSError):
    """Others than this user may write the folder, or it is no folder."""


def choose_cache_folder(environment: Mapping[str, str]) -> Path:
    """The user's folder for what can be made again, by the XDG Base Directory Specification."""
    base = Path(environment.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():  # the specification has another ignored
        return base / NAME
    try:
        return Path.home() / ".cache" / NAME
    except RuntimeError:  # a user whom the system doesn't know, as in some containers
        return Path(tempfile.gettempdir(), f"{NAME}-{os.geteuid()}")


def open_private_folder(folder: Path) -> Path:
    """The folder, made if it is not there. Raises :class:`NotPrivate`, or another ``OSError``."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
    check_private(folder)
    return folder


def is_own_folder(path: Path) -> bool:
    """Whether ``path`` is a folder that this user alone may open. Raises ``OSError`` where there is nothing."""
    found = path.lstat()  # of the name itself: a link may lead anywhere
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def check_private(folder: Path) -> None:
    """Raises :class:`NotPrivate` where ``folder`` is not this user's alone, or lies where others can replace it."""
    if not is_own_folder(folder):
        raise NotPrivate(
            f"{folder} is not a folder of this user alone: chmod 700, or name another, [dagsched] cache_dir"
        )
    if stranger := find_stranger_above(folder):
        raise NotPrivate(f"{stranger}, above {folder}: name another, [dagsched] cache_dir")
