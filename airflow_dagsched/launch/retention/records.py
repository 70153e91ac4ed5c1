"""Commit records as retention sees them: tolerant of whatever a file may hold, for nothing that is there stops it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_dagsched.launch.protocol.printable import is_clean
from airflow_dagsched.launch.protocol.tables import FILE_FORMATS


@dataclass(frozen=True, slots=True)
class Written:
    """What a record says of where its rows are."""

    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """What a lease says of how long it lasts."""

    expires: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of one interval."""

    file: str
    modified: float
    """Seconds since 1970."""
    is_whole: bool = False
    """False: it is torn, empty, or no record at all, and counts as never written."""
    of_table: bool = False
    is_refused: bool = False
    """It stands in place of a record that was never to be made."""
    path: str = ""
    """Where the rows are."""
    writer: str = ""
    overwrites: frozenset[str] | None = None
    """Partitions ("" for the whole table) that it wrote over in a table whose rows do not say which commit they are of;
    None: it says nothing that another record does not.
    """


def read_record(file: str, modified: float, raw: Mapping[str, Any]) -> Record:
    """The record in ``file``."""
    path, writer = raw.get("path"), raw.get("writer", "")
    # Whoever reads it for its rows takes one with half a surrogate pair for none, too: no file is named so.
    if not is_clean(path) or not is_clean(writer):
        return Record(file, modified, is_refused="refused" in raw)
    return Record(
        file,
        modified,
        is_whole=True,
        of_table=raw.get("table") is not None,
        path=strip_scheme(path),
        writer=writer,
        overwrites=_find_overwritten(raw),
    )


def strip_scheme(url: str) -> str:
    """``url`` as the operating system names it; of another file system, as it is."""
    return url.removeprefix("file:").removeprefix("//") if url.startswith("file:") else url


def _find_overwritten(raw: Mapping[str, Any]) -> frozenset[str] | None:
    if raw.get("table") is None or str(raw.get("format")) in FILE_FORMATS or raw.get("mode") == "append":
        return None
    partitions = raw.get("partitions")
    named = [each for each in partitions if isinstance(each, str)] if isinstance(partitions, list) else []
    return frozenset(named or [""])


def find_superseded(records: Sequence[Record]) -> frozenset[Record]:
    """Of the records of one interval, in their order, those that no writer will ask for.

    Of each writer the newest is asked for. So is one that wrote over partitions of another writer's newest.
    """
    whole = [record for record in records if record.is_whole]
    newest = {record.writer: record for record in whole}
    kept: list[Record] = []
    # From the newest: a record that stays may already say all that an older one of its writer says.
    for record in reversed(whole):
        if record is newest[record.writer] or _is_still_needed(record, kept, newest.values(), whole):
            kept.append(record)
    return frozenset(whole) - frozenset(kept)


def _is_still_needed(record: Record, kept: Iterable[Record], newest: Iterable[Record], order: Sequence[Record]) -> bool:
    """Whether it wrote over what an older writer's newest record wrote, and no later record of its own says so."""
    if record.overwrites is None:
        return False
    mine = {part for each in kept if each.writer == record.writer for part in each.overwrites or ()}
    before = order[: order.index(record)]
    return not record.overwrites <= mine and any(each in before and each.writer != record.writer for each in newest)
