"""How a stored dataset is partitioned: the columns in its folders' names, and a walk that lists only what may match.

    /data/orders/day=2013-01-01/hour=0/part-0.parquet        where day = '2013-01-02'
                 day=2013-01-02/hour=0/part-0.parquet        lists /data/orders, day=2013-01-02, hour=0 and hour=1
                                hour=1/part-0.parquet        never day=2013-01-01

Who lists is an edge's business: anything with ``children``. Names are escaped as Spark and Hive do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Block, Buckets, Partition, Scalar
from airflow_dagsched.plan.pruning.buckets import bucket_of
from airflow_dagsched.plan.pruning.conditions.condition import ALWAYS, Condition
from airflow_dagsched.plan.pruning.conditions.matching import NULL_PARTITION, match_keys
from airflow_dagsched.plan.reasons.pruning import ConditionObjection

_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
Key = dict[str, Scalar]
BUCKET = "bucket "


class Entry(Struct, frozen=True):
    """A name in a folder. Bytes, and the blocks where it is known who holds them, of a file alone."""

    name: str
    is_folder: bool = False
    bytes: int = 0
    blocks: tuple[Block, ...] = ()


class Lister(Protocol):
    """Reads folders of some file system, nothing else."""

    def list_children(self, folder: str) -> Iterable[Entry]:
        """What is in ``folder``, in any order. Raises ``FileNotFoundError``."""
        ...


class Stored(Struct, frozen=True):
    """A partition and the folder it is in, relative to its table."""

    folder: str
    partition: Partition


class Listing(Struct, frozen=True):
    """What is stored of a table, as far as it may match."""

    stored: tuple[Stored, ...]
    left_out: tuple[str, ...] = ()
    """Folders that cannot match, relative to the table: never listed."""
    objection: ConditionObjection | None = None
    """Why nothing was left out."""


class _Folder(Struct, frozen=True):
    path: str
    key: Key


def make_folder_name(column: str, value: Scalar) -> str:
    """``day=2013-01-01``, escaped as Spark writes it.

    >>> make_folder_name("at", "2013-01-01 05:00")
    'at=2013-01-01 05%3A00'
    """
    # Spark writes an empty string as null, too.
    text = NULL_PARTITION if value is None or value == "" else _write_value(value)
    return f"{_escape_name(column)}={_escape_name(text)}"


def partition_name(partition: Partition) -> str:
    """How plans name a partition: its folder, and its bucket if it has one."""
    folder = "/".join(make_folder_name(column, value) for column, value in partition.key.items())
    return "/".join(
        [*([folder] if folder else []), *([] if partition.bucket is None else [f"{BUCKET}{partition.bucket}"])]
    )


def parse_partition_name(name: str) -> Partition:
    """The partition that a plan names so: what ``partition_name`` made of it, sizes and blocks left aside."""
    key: Key = {}
    bucket = None
    for part in name.split("/"):
        found = split_folder_name(part)
        if found is not None:
            key[found[0]] = found[1]
        elif part.startswith(BUCKET):
            bucket = int(part.removeprefix(BUCKET))
    return Partition(key=key, bucket=bucket)


def split_folder_name(name: str) -> tuple[str, str | None] | None:
    """Column and value of a partition's folder; None for any other name."""
    column, equals, value = name.partition("=")  # the first one: a value may contain others
    if not (column and equals):
        return None
    return unquote(column), None if value == NULL_PARTITION else unquote(value)


def list_stored(lister: Lister, root: str, condition: Condition = ALWAYS, buckets: Buckets | None = None) -> Listing:
    """The partitions of the table at ``root`` that may match, in the order of their folders.

    Raises ``FileNotFoundError`` if there is no such folder: that is no empty table.
    """
    walk = _Walk(lister, root.rstrip("/"), buckets)
    found = walk.run(condition)
    if isinstance(found, Listing):
        return found
    # The condition turned out to be of no use half-way: some folders have not been listed yet.
    whole = walk.run(ALWAYS)
    assert isinstance(whole, Listing), "nothing can be wrong with a condition that asks for nothing"
    return replace(whole, objection=found)


class _Walk(Struct, frozen=True):
    lister: Lister
    root: str
    buckets: Buckets | None

    def run(self, condition: Condition) -> Listing | ConditionObjection:
        """What may match; level by level, so that of a folder that can't match nothing is listed."""
        stored: list[Stored] = []
        left_out: list[str] = []
        queue = [_Folder("", {})]
        for folder in queue:
            files, below = self._read_folder(folder)
            stored += _list_partitions(folder, files, self.buckets)
            # Of one folder together: a column's type follows from all its values side by side.
            kept = match_keys(condition, [each.key for each in below])
            if not isinstance(kept, tuple):
                return kept
            for each, keep in zip(below, kept, strict=True):
                if keep:
                    queue.append(each)  # lists are walked while they grow: level by level
                else:
                    left_out.append(each.path)
        return Listing(tuple(sorted(stored, key=_sort_key)), tuple(sorted(left_out)))

    def _read_folder(self, folder: _Folder) -> tuple[list[Entry], list[_Folder]]:
        entries = sorted(self.lister.list_children(_join_path(self.root, folder.path)), key=lambda entry: entry.name)
        seen = [entry for entry in entries if not is_hidden(entry.name)]
        return [entry for entry in seen if not entry.is_folder], [
            _Folder(_join_path(folder.path, entry.name), _extend_key(folder.key, entry.name))
            for entry in seen
            if entry.is_folder
        ]


def is_hidden(name: str) -> bool:
    """Whether Spark leaves the name out when it reads a folder."""
    # ``_SUCCESS`` and ``_temporary`` go, ``_day=1`` is a partition (``HadoopFSUtils.shouldFilterOutPathName``).
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _extend_key(key: Key, name: str) -> Key:
    found = split_folder_name(name)
    return key if found is None else {**key, found[0]: found[1]}


def _list_partitions(folder: _Folder, files: Sequence[Entry], buckets: Buckets | None) -> Iterator[Stored]:
    """One for the folder; of a bucketed table one for each bucket that has files."""
    groups: dict[int | None, list[Entry]] = {}
    for file in files:
        groups.setdefault(bucket_of(file.name) if buckets else None, []).append(file)  # None: any bucket
    for bucket, members in groups.items():
        # A store without hosts, such as S3, has files and no blocks.
        blocks = tuple(block for file in members for block in file.blocks or (Block(bytes=file.bytes),))
        total = sum(file.bytes for file in members)
        yield Stored(folder.path, Partition(key=folder.key, bucket=bucket, bytes=total, blocks=blocks))


def _sort_key(stored: Stored) -> tuple[str, int]:
    bucket = stored.partition.bucket
    return stored.folder, -1 if bucket is None else bucket


def _join_path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and name else folder or name


def _write_value(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escape_name(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
