"""A checkpoint with which a new query over files begins where an old one has read to.

Spark's file source has no option for that. But what it has read is in the checkpoint, as a list of files, and an
offset is a place in the list. So the new query runs once over folders with nothing in them, which makes a checkpoint of
its own with an empty state; then the old list takes the place of its own, as far as the offset. Written for layouts
that were looked at, and for no other: where a checkpoint is not like them, the query has to read old files, too, and
leave their rows out.

It runs two batches, and the offset is put in for both: a query that is started again asks its sources for what its
last batch was, which is then nothing, not all that ever was.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_dagsched.launch.protocol.wire import load_json
from airflow_dagsched.spark.streams.file_lists import ReadFiles, UnknownLayout, copy_list

BATCHES = 2
"""That the run over nothing has: no sink has seen them."""
_BEGIN = "prepared.json"
"""File beside Spark's own, with the offsets."""
_OFFSETS = "v2"
"""Of ``offsets/<n>``: offsets have the names of their sources."""


def prepare_checkpoint(
    checkpoint: Path, read: Mapping[str, ReadFiles], compact_interval: int, run_once: Callable[[Path], None]
) -> None:
    """Make ``checkpoint``, unless it is there. A crash leaves none, and the next call begins anew.

    :param read: for each source of the query, by its name.
    :param compact_interval: see ``file_lists.copy_list``.
    :param run_once: runs the query over empty folders (``empty_sources``) with the checkpoint it is given, until there
        is nothing more to read.

    Raises ``UnknownLayout`` before anything is in ``checkpoint``.
    """
    if checkpoint.exists():
        return
    draft, lists = (checkpoint.with_name(f".{checkpoint.name}-{name}") for name in ("draft", "lists"))
    for folder in (draft, lists):
        shutil.rmtree(folder, ignore_errors=True)
    # First: the old query goes on, and removes files that it has compacted.
    for name, files in read.items():
        copy_list(files, lists / name, compact_interval)
    run_once(draft)
    _check_layout(draft, read)
    for name in read:
        shutil.rmtree(draft / "sources" / name)
        (lists / name).rename(draft / "sources" / name)
    lists.rmdir()
    offsets = {name: {"logOffset": files.offset} for name, files in read.items()}
    for batch in range(BATCHES):
        path = draft / "offsets" / str(batch)
        _write(path, _set_offsets(path, offsets))
    (draft / _BEGIN).write_text(json.dumps(offsets))
    _rename_schemas(draft, checkpoint)
    draft.rename(checkpoint)


def read_prepared(checkpoint: Path) -> dict[str, Any]:
    """Source -> offset at which a query began whose checkpoint was made here; empty: it was not."""
    path = checkpoint / _BEGIN
    return dict(load_json(path.read_text())) if path.exists() else {}


def _check_layout(draft: Path, sources: Iterable[str]) -> None:
    """Whether the run over nothing made what is expected of it: its batches, and a log for each source."""
    batches = [str(each) for each in range(BATCHES)]
    for folder, expected in (("offsets", batches), ("commits", batches), ("sources", sorted(sources))):
        if (found := _list_names(draft / folder)) != expected:
            raise UnknownLayout(f"{draft / folder} has {found}, not {expected}")


def _list_names(folder: Path) -> Sequence[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []


def _set_offsets(path: Path, new: Mapping[str, Any]) -> str:
    version, metadata, *lines = path.read_text().splitlines()
    offsets = {name: text for name, _, text in (line.partition(":") for line in lines)}
    if version != _OFFSETS or sorted(offsets) != sorted(new):
        raise UnknownLayout(f"{path} is of format {version} and has offsets of {sorted(offsets)}")
    if any(set(load_json(text)) != {"logOffset"} for text in offsets.values()):
        raise UnknownLayout(f"{path} has offsets that are no places in a list of files")
    set_to = {name: json.dumps(new[name], separators=(",", ":")) for name in offsets}
    return "\n".join([version, metadata, *(f"{name}:{text}" for name, text in set_to.items())])


def _rename_schemas(draft: Path, checkpoint: Path) -> None:
    # Of ``transformWithState`` Spark writes down whole paths of its state's schemas.
    for path in draft.glob("state/*/_metadata/*/*"):
        if not path.name.startswith("."):
            _write(path, path.read_text().replace(f"/{draft.name}/state/", f"/{checkpoint.name}/state/"))


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    # Spark would compare the text with the sum of what was there.
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
