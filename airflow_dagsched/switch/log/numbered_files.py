"""Names of a log's files, and what a reader must know of each to trust the next one.

::

    0000000500.json            the last record that the snapshot has: it stays, for who looks for the next one
    0000000501.json ..         one record each
    snapshot-0000000500.json   list of all records up to number 500 that somebody may still need
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_RECORD = re.compile(r"(\d{10})\.json")
_SNAPSHOT = re.compile(r"snapshot-(\d{10})\.json")


class Identity(NamedTuple):
    """Tells a file from another that has its name later."""

    device: int
    inode: int
    modified_ns: int


class Numbers(NamedTuple):
    """What a folder holds."""

    records: tuple[int, ...]
    snapshots: tuple[int, ...]
    """Both in order."""


def name_record_file(folder: Path, number: int) -> Path:
    """Path of a record."""
    return folder / f"{number:010d}.json"


def name_snapshot_file(folder: Path, number: int) -> Path:
    """Path of the snapshot of all records up to ``number``."""
    return folder / f"snapshot-{number:010d}.json"


def list_numbers(folder: Path) -> Numbers:
    """Numbers of all records and snapshots in the folder; none if it is missing."""
    try:
        names = [each.name for each in folder.iterdir()]
    except FileNotFoundError:
        names = []
    return Numbers(_list_matches(_RECORD, names), _list_matches(_SNAPSHOT, names))


def read_file(path: Path) -> tuple[str, Identity] | None:
    """A file's text, and which file it is; None if there is none."""
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.read(), _identify(file.fileno())
    except FileNotFoundError:
        return None


def identify_file(path: Path) -> Identity | None:
    """Which file has the name now; None: none."""
    try:
        # Opened, not only looked at: a network file system may answer the latter from what it remembers.
        with path.open("rb") as file:
            return _identify(file.fileno())
    except FileNotFoundError:
        return None


def _identify(handle: int) -> Identity:
    stat = os.fstat(handle)
    return Identity(stat.st_dev, stat.st_ino, stat.st_mtime_ns)


def _list_matches(pattern: re.Pattern[str], names: list[str]) -> tuple[int, ...]:
    return tuple(sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name))))
