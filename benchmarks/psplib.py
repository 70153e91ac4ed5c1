"""PSPLIB's format of projects (``.sm``, one mode), as published by Kolisch and Sprecher 1996."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.plan.rcpsp.project import Project

_SECTION = re.compile(r"^(PRECEDENCE RELATIONS|REQUESTS/DURATIONS|RESOURCEAVAILABILITIES)\s*:\s*$", re.MULTILINE)


def read_project(file: Path) -> Project:
    """The project of ``file``, jobs in the file's order, the empty first and last one included.

    Raises ``InvalidInput`` where the file is not in the format, names other jobs than it has, or has modes.
    """
    sections = _sections(file)
    durations, demands = _requests(file, sections["REQUESTS/DURATIONS"])
    return Project(
        durations=tuple(durations),
        demands=tuple(demands),
        successors=tuple(_successors(file, sections["PRECEDENCE RELATIONS"], len(durations))),
        capacities=tuple(_availabilities(file, "RESOURCEAVAILABILITIES", sections["RESOURCEAVAILABILITIES"])),
    )


def _sections(file: Path) -> dict[str, list[list[int]]]:
    """Rows of numbers by heading; headings of columns and rulers are left out."""
    parts = _SECTION.split(file.read_text(errors="replace"))
    found = {name: list(_rows(body)) for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    for name in ("PRECEDENCE RELATIONS", "REQUESTS/DURATIONS", "RESOURCEAVAILABILITIES"):
        if not found.get(name):
            raise InvalidInput(str(file), name, "no such section, or no numbers in it")
    return found


def _rows(body: str) -> Iterator[list[int]]:
    for line in body.splitlines():
        words = line.split()
        if words and all(word.isdigit() for word in words):
            yield [int(word) for word in words]


def _requests(file: Path, rows: Sequence[Sequence[int]]) -> tuple[list[int], list[tuple[int, ...]]]:
    """Job, mode, duration, then a demand for each resource."""
    for at, row in enumerate(rows):
        if len(row) < 3 or len(row) != len(rows[0]) or row[:2] != [at + 1, 1]:
            raise InvalidInput(str(file), f"REQUESTS/DURATIONS row {at + 1}", f"job, mode 1, duration, demands: {row}")
    return [row[2] for row in rows], [tuple(row[3:]) for row in rows]


def _successors(file: Path, rows: Sequence[Sequence[int]], count: int) -> Iterator[tuple[int, ...]]:
    """Job, modes, number of successors, then each."""
    if len(rows) != count:
        raise InvalidInput(str(file), "PRECEDENCE RELATIONS", f"{len(rows)} rows for {count} jobs")
    for at, row in enumerate(rows):
        if len(row) < 3 or row[0] != at + 1 or len(row) != 3 + row[2] or not all(0 < job <= count for job in row[3:]):
            raise InvalidInput(str(file), f"PRECEDENCE RELATIONS row {at + 1}", f"job, modes, count, successors: {row}")
        yield tuple(job - 1 for job in row[3:])


def _availabilities(file: Path, name: str, rows: Sequence[Sequence[int]]) -> Sequence[int]:
    if len(rows) != 1:
        raise InvalidInput(str(file), name, f"one row expected, found {len(rows)}")
    return rows[0]
