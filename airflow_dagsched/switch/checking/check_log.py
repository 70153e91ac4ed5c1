"""The check of a log, all of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.switch.checking import batches, fences, record_order
from airflow_dagsched.switch.checking.facts import Violation
from airflow_dagsched.switch.checking.log_files import Entry, Files, read_files
from airflow_dagsched.switch.checking.owners import Owned, list_owned
from airflow_dagsched.switch.checking.shapes import build_log, check_shape

RULES = (*record_order.RULES, *fences.RULES, *batches.RULES)


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found."""

    violations: tuple[Violation, ...]
    """None: each window is of exactly one epoch, and no batch counts twice."""
    judged_to: int
    """Number of the last record that could be judged."""
    owned: tuple[Owned, ...]
    """Which windows are whose, by those records."""


def check_log(folder: Path) -> Checked:
    """Judge the log in a folder. Raises ``InvalidInput`` if there is none."""
    try:
        files = read_files(folder)
    except OSError as error:
        raise InvalidInput(str(error.filename or folder), "", f"cannot be read: {error.strerror}") from None
    if not (files.entries or files.violations):
        raise InvalidInput(str(folder), "", "holds no record of a log")
    return check_files(files)


def check_files(files: Files) -> Checked:
    """Judge what was read of a log."""
    entries, misshapen = _split_at_first_misshapen(files.entries)
    log = build_log(entries, files.compacted)
    found = [*files.violations, *misshapen]
    found += [_compare_number(each) for each in entries if each.says["n"] != each.n]
    found += [violation for rule in RULES for violation in rule(log)]
    ordered = sorted(found, key=lambda each: each.n)
    return Checked(tuple(ordered), entries[-1].n if entries else 0, tuple(list_owned(log)))


def _split_at_first_misshapen(entries: tuple[Entry, ...]) -> tuple[tuple[Entry, ...], list[Violation]]:
    """What comes behind a record that cannot be understood is not judged: it may have been a fence."""
    for at, each in enumerate(entries):
        violation = check_shape(each)
        if violation:
            return entries[:at], [violation]
    return entries, []


def _compare_number(entry: Entry) -> Violation:
    return Violation("number", entry.n, f"says that it is record {entry.says['n']}")
