"""A log made shorter: the records that somebody may still need in one file, the others removed.

The snapshot is there before the first record goes, and records go upwards (``numbered_log`` says why). It holds the
records as they were written, with what their writers put in that is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Generic

from airflow_dagsched.exclusive import create_exclusive
from airflow_dagsched.switch.log.log_rules import FLOW_RULES, LogRules, R, S, load_file
from airflow_dagsched.switch.log.numbered_files import (
    list_numbers,
    name_record_file,
    name_snapshot_file,
    read_file,
)
from airflow_dagsched.switch.records import GarbledLog


@dataclass(frozen=True, slots=True)
class Written(Generic[R]):
    """A record, and the JSON it was made of."""

    raw: Any
    record: R


def compact_log(folder: Path, keep: int, rules: LogRules[Any, Any] = FLOW_RULES) -> None:
    """Compact all but the last ``keep`` records. Any process may, several at once. Raises ``GarbledLog``.

    :param rules: of the log in the folder, a flow's unless it is said.
    """
    numbers = list_numbers(folder)
    base = numbers.snapshots[-1] if numbers.snapshots else 0
    last = max(numbers.records, default=0) - keep
    if last <= base:
        return
    old = read_snapshot(folder, base, rules) if base else ()
    new = _read_records(folder, base + 1, last, rules)
    if old is None or new is None:  # another process compacts
        return
    story = reduce(rules.fold, (each.record for each in new), restore_written(old, folder, base, rules))
    kept = [each.raw for each in (*old, *new) if rules.is_needed(story, each.record)]
    # If it is there already, whoever made it may have died before it removed anything.
    create_exclusive(name_snapshot_file(folder, last), json.dumps(kept))
    _remove_below(folder, last)


def read_snapshot(folder: Path, number: int, rules: LogRules[R, S]) -> tuple[Written[R], ...] | None:
    """The records of a snapshot, in order; None if it is gone. Raises ``GarbledLog``."""
    path = name_snapshot_file(folder, number)
    found = read_file(path)
    if found is None:
        return None
    raw = load_file(found[0], path)
    if not isinstance(raw, list):
        raise GarbledLog(str(path), "is no list of records")
    return tuple(Written(each, rules.fit(each, str(path))) for each in raw)


def restore_written(written: Iterable[Written[R]], folder: Path, number: int, rules: LogRules[R, S]) -> S:
    """The story of the snapshot's records. Raises ``GarbledLog`` where they are not all there."""
    try:
        return rules.restore((each.record for each in written), number)
    except LookupError as error:
        raise GarbledLog(str(name_snapshot_file(folder, number)), error.args[0]) from None


def _read_records(folder: Path, first: int, last: int, rules: LogRules[R, S]) -> tuple[Written[R], ...] | None:
    found = []
    for number in range(first, last + 1):
        path = name_record_file(folder, number)
        read = read_file(path)
        if read is None:
            return None
        raw = load_file(read[0], path)
        found.append(Written(raw, rules.fit(raw, str(path))))
    return tuple(found)


def _remove_below(folder: Path, number: int) -> None:
    """Remove records below ``number``, upwards, and then older snapshots."""
    for path in _list_below(folder, number):
        path.unlink(missing_ok=True)


def _list_below(folder: Path, number: int) -> Iterator[Path]:
    numbers = list_numbers(folder)
    yield from (name_record_file(folder, each) for each in numbers.records if each < number)
    yield from (name_snapshot_file(folder, each) for each in numbers.snapshots if each < number)
