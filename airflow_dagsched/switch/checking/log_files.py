"""The files of a log as numbered JSON objects, up to where they are whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_dagsched.switch.checking.facts import Violation

RECORD = re.compile(r"(\d{10})\.json")
SNAPSHOT = re.compile(r"snapshot-(\d+)\.json")
TRIES = 5
"""A writer may add to the log, or compact it, while it is read: what seems to be missing is looked for again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as it was found."""

    n: int
    """That its place says: the file's name, or in a snapshot its own word."""
    says: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Files:
    """What was read; nothing that comes behind what is missing or torn."""

    compacted: int
    entries: tuple[Entry, ...]
    violations: tuple[Violation, ...]


class Torn(Exception):
    """A file that is no whole record, or missing where there are later ones."""

    def __init__(self, rule: str, n: int, message: str) -> None:
        self.violation = Violation(rule, n, message)


def read_files(folder: Path) -> Files:
    """Read all that can be believed. Raises ``OSError`` if there is no such folder."""
    files = _read_once(folder)
    for _ in range(TRIES):
        if not any(each.rule == "gap" for each in files.violations):
            break
        files = _read_once(folder)
    return files


def _read_once(folder: Path) -> Files:
    names = sorted(each.name for each in folder.iterdir() if each.suffix == ".json" and not each.name.startswith("."))
    snapshots, records = _sort_names(names, SNAPSHOT), _sort_names(names, RECORD)
    known = {*snapshots.values(), *records.values()}
    violations = [Violation("name", 0, f"{name} is no record's name") for name in names if name not in known]
    compacted = max(snapshots, default=0)
    entries: list[Entry] = []
    try:
        if compacted:
            entries += _read_snapshot(folder / snapshots[compacted], compacted)
            _check_own_record(folder, compacted, records, entries)
        # What a compaction has not come to remove yet is in the snapshot, too.
        for entry in _read_records(folder, compacted, {n: name for n, name in records.items() if n > compacted}):
            entries.append(entry)  # one by one: those before a torn one count
    except Torn as torn:
        violations.append(torn.violation)
    return Files(compacted, tuple(entries), tuple(violations))


def _sort_names(names: Iterable[str], pattern: re.Pattern[str]) -> dict[int, str]:
    """Number -> name."""
    return {int(found[1]): name for name in names if (found := pattern.fullmatch(name))}


def _read_snapshot(path: Path, compacted: int) -> list[Entry]:
    listed = _read_json(path, compacted)
    if not isinstance(listed, list):
        raise Torn("garbled", compacted, f"{path.name} is no list of records")
    entries, before = [], 0
    for says in listed:
        n = says.get("n") if isinstance(says, dict) else None
        if type(n) is not int or not before < n <= compacted:
            raise Torn("garbled", compacted, f"{path.name} has record {n!r} behind record {before}")
        entries.append(Entry(n, says))
        before = n
    return entries


def _check_own_record(folder: Path, compacted: int, names: Mapping[int, str], entries: Iterable[Entry]) -> None:
    """The last record of a snapshot stays beside it: by that its readers know whether the log goes on from there."""
    if compacted not in names:
        raise Torn("gap", compacted, "is not there, and its snapshot is: nobody can read on from that")
    says = _read_record(folder / names[compacted], compacted)
    if any(each.n == compacted and each.says != says for each in entries):
        raise Torn("garbled", compacted, "is another one in its snapshot")


def _read_records(folder: Path, compacted: int, names: Mapping[int, str]) -> Iterator[Entry]:
    for expected, n in enumerate(sorted(names), compacted + 1):
        if n != expected:
            raise Torn("gap", expected, f"is not there, and record {n} is; nothing behind it can be judged")
        yield Entry(n, _read_record(folder / names[n], n))


def _read_record(path: Path, n: int) -> dict[str, Any]:
    says = _read_json(path, n)
    if not isinstance(says, dict):
        raise Torn("garbled", n, f"{path.name} is no JSON object")
    return says


def _read_json(path: Path, n: int) -> Any:
    try:
        return json.loads(path.read_bytes(), parse_constant=_refuse, object_pairs_hook=_build_object)
    except FileNotFoundError:
        raise Torn("gap", n, f"{path.name} went while the log was read") from None
    except (ValueError, RecursionError) as error:
        raise Torn("garbled", n, f"{path.name} is torn: {error}") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)
