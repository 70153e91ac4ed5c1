"""The list of files that a query has read of a source, as Spark keeps it in a checkpoint; copied as far as an offset.

::

    sources/<name>/  8  9.compact  10  11  12       a file a place in the list, with a line for each file read there;
                                                    9.compact has all up to it, and 8 will be removed some time
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.launch.protocol.wire import load_json

_COMPACT = ".compact"
_VERSION = "v1"
"""First line of each file."""


class UnknownLayout(Exception):
    """A checkpoint is not as those that this was written for: the text says where."""


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """What an old query has read of a source."""

    log: Path
    """``sources/<name>`` of its checkpoint."""
    offset: int
    """Up to which place in it the new query has nothing to read."""


def copy_list(read: ReadFiles, to: Path, compact_interval: int) -> None:
    """Copy the list up to the offset into a new folder.

    :param compact_interval: that the new query is told to compact its list at.

    Raises ``UnknownLayout``.
    """
    to.mkdir(parents=True)
    chain = find_chain(read)
    try:
        if chain is not None:
            for path in chain:
                shutil.copyfile(path, to / path.name)
        else:
            _cut_list(read, to, compact_interval)
    except FileNotFoundError as error:
        raise UnknownLayout(f"{read.log} was compacted meanwhile: {error}") from error


def find_chain(read: ReadFiles) -> tuple[Path, ...] | None:
    """Files that have all of the list up to the offset: the newest compacted one, and those behind it.

    None: one is missing. Spark has compacted behind the offset, and removed what was before.
    """
    there = _list_names(read.log)
    compacted = max((number for number in _list_compacted(read.log) if number <= read.offset), default=-1)
    names = [] if compacted < 0 else [f"{compacted}{_COMPACT}"]
    names += [str(number) for number in range(compacted + 1, read.offset + 1)]
    return tuple(read.log / name for name in names) if there.issuperset(names) else None


def find_path(log: Path) -> str | None:
    """Path of a file in the list; None: there is none."""
    # The newest: what is before it may be removed as it is compacted.
    newest = max((path for path in log.iterdir() if _find_place(path) >= 0), key=_find_place, default=None)
    line = next(_read_lines(newest), None) if newest else None
    return None if line is None else str(load_json(line)["path"])


def _cut_list(read: ReadFiles, to: Path, compact_interval: int) -> None:
    """From a list that was compacted behind the offset: each entry tells at which place it was."""
    # Spark takes a list for whole that is compacted at multiples of the interval.
    compacted = (read.offset + 1) // compact_interval * compact_interval - 1
    places: dict[int, list[str]] = {place: [] for place in range(compacted, read.offset + 1) if place >= 0}
    source = _find_compacted(read)
    for line in _read_lines(source):
        place = load_json(line).get("batchId")
        if not isinstance(place, int):
            raise UnknownLayout(f"{source} does not tell when each file was read")
        if place <= read.offset:
            places[max(place, compacted)].append(line)
    for place, lines in places.items():
        name = f"{place}{_COMPACT}" if place == compacted else str(place)
        (to / name).write_text("\n".join([_VERSION, *lines]))


def _find_compacted(read: ReadFiles) -> Path:
    """The oldest compacted file that has the offset in it. Raises ``UnknownLayout`` if there is none."""
    behind = [number for number in _list_compacted(read.log) if number >= read.offset]
    if not behind:
        raise UnknownLayout(f"{read.log} is not whole up to {read.offset}")
    return read.log / f"{min(behind)}{_COMPACT}"


def _read_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        if (version := next(file, "").strip()) != _VERSION:
            raise UnknownLayout(f"{path} is of format {version}")
        yield from (line.rstrip("\n") for line in file if line.strip())


def _list_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _list_compacted(folder: Path) -> list[int]:
    return [_find_place(Path(name)) for name in _list_names(folder) if name.endswith(_COMPACT)]


def _find_place(path: Path) -> int:
    """Its place in the list; -1: it is no part of that."""
    stem = path.name.removesuffix(_COMPACT)
    return int(stem) if stem.isdigit() else -1
