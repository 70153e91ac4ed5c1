"""A checkpoint with which a new query over files begins where an old one has read to.

Spark's file source has no option for that. But what it has read is in the checkpoint, as a list of files, and an
offset is a place in the list. So the new query runs once over folders with nothing in them, which makes a checkpoint of
its own with an empty state; then the old list takes the place of its own, as far as the offset. Written for layouts
that were looked at, and for no other: where a checkpoint is not like them, the query has to read old files, too, and
leave their rows out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.wire import load_json

FILE_FORMATS = frozenset(["parquet", "orc", "json", "csv", "text"])
_WITH_SCHEMA = ("parquet", "orc")
"""Formats whose files are never empty: there are rows to describe."""
_OFFSETS = "v2"
"""Of ``offsets/<n>``: offsets have the names of their sources."""
_COMPACT = ".compact"


class UnknownLayout(Exception):
    """A checkpoint is not as those that this was written for: the text says where."""


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """What an old query has read of a source."""

    log: Path
    """``sources/<name>`` of its checkpoint."""
    offset: int
    """Up to which place in it the new query has nothing to read."""


def prepare_checkpoint(checkpoint: Path, read: Mapping[str, ReadFiles], run_once: Callable[[Path], None]) -> None:
    """Make ``checkpoint``, unless it is there. A crash leaves none, and the next call begins anew.

    :param read: for each source of the query, by its name.
    :param run_once: runs the query over empty folders (``make_empty_folder``) with the checkpoint it is given, until
        there is nothing more to read.

    Raises ``UnknownLayout`` before anything is in ``checkpoint``.
    """
    if checkpoint.exists():
        return
    chains = {name: choose_chain(files) for name, files in read.items()}
    draft = checkpoint.with_name(f".{checkpoint.name}-draft")
    shutil.rmtree(draft, ignore_errors=True)
    run_once(draft)
    _check_layout(draft, read)
    for name, chain in chains.items():
        _replace_log(draft / "sources" / name, chain)
    _write(draft / "offsets" / "0", _set_offsets(draft / "offsets" / "0", read))
    draft.rename(checkpoint)


def make_empty_folder(session: SparkSession, form: str, schema: str, folder: Path) -> Path:
    """A folder with one file of the format that has no row: without any file Spark would execute no batch."""
    if form in _WITH_SCHEMA:
        session.createDataFrame([], schema).coalesce(1).write.format(form).mode("overwrite").save(str(folder))
    else:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"none.{form}").touch()
    return folder


def choose_chain(read: ReadFiles) -> tuple[Path, ...]:
    """Files of the source's log that have all of it up to the offset: the newest compacted one, and those behind it.

    Raises ``UnknownLayout`` if one is missing: Spark has compacted behind the offset, and removed what was before.
    """
    there = {path.name for path in read.log.iterdir()} if read.log.is_dir() else set()
    compacted = max((number for number in _list_compacted(there) if number <= read.offset), default=None)
    first = 0 if compacted is None else compacted + 1
    names = [] if compacted is None else [f"{compacted}{_COMPACT}"]
    names += [str(number) for number in range(first, read.offset + 1)]
    if missing := [name for name in names if name not in there]:
        raise UnknownLayout(f"{read.log} has no {missing[0]}")
    return tuple(read.log / name for name in names)


def _list_compacted(names: Iterable[str]) -> list[int]:
    stems = [name.removesuffix(_COMPACT) for name in names if name.endswith(_COMPACT)]
    return [int(stem) for stem in stems if stem.isdigit()]


def _check_layout(draft: Path, read: Mapping[str, ReadFiles]) -> None:
    """Whether the run over nothing made what is expected of it: one batch, and a log for each source."""
    for folder in ("offsets", "commits"):
        if (found := _list_names(draft / folder)) != ["0"]:
            raise UnknownLayout(f"{draft / folder} has {found}, not batch 0 alone")
    if (found := _list_names(draft / "sources")) != sorted(read):
        raise UnknownLayout(f"{draft / 'sources'} has {found}, not {sorted(read)}")


def _list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []


def _replace_log(log: Path, chain: tuple[Path, ...]) -> None:
    shutil.rmtree(log)
    log.mkdir()
    for path in chain:
        shutil.copyfile(path, log / path.name)


def _set_offsets(path: Path, read: Mapping[str, ReadFiles]) -> str:
    version, metadata, *lines = path.read_text().splitlines()
    offsets = {name: text for name, _, text in (line.partition(":") for line in lines)}
    if version != _OFFSETS or sorted(offsets) != sorted(read):
        raise UnknownLayout(f"{path} is of format {version} and has offsets of {sorted(offsets)}")
    if any(set(load_json(text)) != {"logOffset"} for text in offsets.values()):
        raise UnknownLayout(f"{path} has offsets that are no places in a list of files")
    set_to = {name: json.dumps({"logOffset": read[name].offset}, separators=(",", ":")) for name in offsets}
    return "\n".join([version, metadata, *(f"{name}:{text}" for name, text in set_to.items())])


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    # Spark would compare the text with the sum of what was there.
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
