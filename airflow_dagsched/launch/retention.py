"""What may go from a work dir on a local or mounted file system, once it is older than the retention.

::

    datasets/<output>/<interval>/<generation>-<writer>/   any that is old enough
    commits/<output>/<interval>/<generation>.json         a dataset's with its data; a table's but for the newest,
                                                          which the next write of that interval needs
    leases/<output>/<interval>/<generation>.json          long expired
    runs/<dag>/<run>/                                     manifests and events
    <parent of table>/.dagsched-<table>/<draft>/          of a writer that died before it committed

Older than the retention means that no run still reads it: choose it longer than the longest run. Nothing of
an interval goes while someone holds its lease. A dataset that is gone is made again by who needs it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any


def expired(work_dir: str, now: float, keep_s: float) -> tuple[Path, ...]:
    """Files and folders to remove, by name. ``now`` is in seconds since 1970; reads names, dates and records."""
    root, before = _local(work_dir), now - keep_s
    held = {_interval(path) for path in root.glob("leases/*/*/*.json") if _expires(path) > now}
    datasets = {
        path for path in root.glob("datasets/*/*/*") if _interval(path) not in held and _modified(path) < before
    }
    intervals = (path for path in root.glob("commits/*/*") if (path.parent.name, path.name) not in held)
    records = {record for interval in intervals for record in _records(interval, before, datasets)}
    runs = {path for path in root.glob("runs/*/*") if _newest(path) < before}
    return tuple(sorted({*datasets, *records, *runs, *_leases(root, before), *_drafts(root, before)}))


def remove(paths: Iterable[Path]) -> None:
    """Remove what ``expired`` found, and folders that are empty then. What is gone already is fine."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        for parent in path.parents[:2]:
            with suppress(OSError):  # not empty, or just gone
                parent.rmdir()


def _records(interval: Path, before: float, datasets: set[Path]) -> Iterator[Path]:
    """Of one interval: the intent of an append is needed until its record is there."""
    records = sorted(interval.glob("*.json"))
    old = [path for path in records if _modified(path) < before]
    yield from (path for path in old if path != records[-1] or _points_nowhere(_read(path), datasets))
    intents = interval.glob("*.json.intent")
    yield from (path for path in intents if path.with_suffix("").exists() and _modified(path) < before)


def _points_nowhere(record: dict[str, Any], datasets: set[Path]) -> bool:
    """Whether the record is a dataset's whose folder is gone, or goes now; a torn one is no one's."""
    if not record or record.get("table") is not None:
        return not record
    path = _local(str(record.get("path")))
    return path in datasets or not path.exists()


def _leases(root: Path, before: float) -> Iterator[Path]:
    return (path for path in root.glob("leases/*/*/*.json") if max(_expires(path), _modified(path)) < before)


def _drafts(root: Path, before: float) -> Iterator[Path]:
    """Not those with a journal: the next reader or writer of the table finishes them."""
    records = [_read(path) for path in root.glob("commits/*/*/*.json")]
    for table in {_local(str(record["path"])) for record in records if record.get("table")}:
        for draft in table.parent.glob(f".dagsched-{table.name}/*"):
            if draft.is_dir() and not (draft / "swap.json").exists() and _newest(draft) < before:
                yield draft


def _interval(path: Path) -> tuple[str, str]:
    """The folders' names of output and interval of a file in one."""
    return path.parent.parent.name, path.parent.name


def _local(url: str) -> Path:
    return Path(url.removeprefix("file:").removeprefix("//") if url.startswith("file:") else url)


def _read(path: Path) -> dict[str, Any]:
    """A record or lease; empty if it is torn or just gone."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (FileNotFoundError, ValueError):
        return {}


def _expires(path: Path) -> float:
    """When the lease in the file ends; 0 if it was given back, or cannot be read."""
    return float(_read(path).get("expires", 0.0))


def _modified(path: Path) -> float:
    """Seconds since 1970; now or later if it is just gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _newest(folder: Path) -> float:
    """Date of the last change in the folder."""
    return max(_modified(path) for path in (folder, *folder.rglob("*")))
