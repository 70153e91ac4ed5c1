"""The user's private cache folder: who can write what is there can run code, so nobody else may."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

OWNER_ONLY = 0o700
NAME = "airflow_dagsched"


class NotPrivate(OSError):
    """Others than this user may write the folder, or it is no folder."""


def choose_cache_folder(configured: str, environment: Mapping[str, str], home: Path) -> Path:
    """The folder that ``[dagsched] cache_dir`` names, else the one where this user's programs keep such things."""
    if configured:
        return Path(configured)
    base = environment.get("XDG_CACHE_HOME", "")
    # As the XDG specification has it: a relative path there is ignored.
    return (Path(base) if base.startswith("/") else home / ".cache") / NAME


def open_private_folder(folder: Path) -> Path:
    """The folder, made if it is not there. Raises :class:`NotPrivate`, or another ``OSError``."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Raises :class:`NotPrivate` where ``folder`` is not this user's alone, or lies where others can replace it."""
    found = folder.lstat()  # of the name itself: a link may lead anywhere
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise NotPrivate(
            f"{folder} is not a folder of this user alone: chmod 700, or name another, [dagsched] cache_dir"
        )
    for above in folder.parents:
        known = above.stat()
        loose = known.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        # With the sticky bit, as /tmp has it, nobody can replace what is another's.
        if (loose and not known.st_mode & stat.S_ISVTX) or known.st_uid not in (0, os.geteuid()):
            raise NotPrivate(f"others may write {above}, above {folder}: name another, [dagsched] cache_dir")
