"""``Table``: where a step's declared input or output lives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

FILE_FORMATS = frozenset({"parquet", "orc", "csv", "json", "text", "avro"})
"""Formats that are plain folders of files: their swap is ours. Others commit by themselves."""

INTERVAL_NAMES = frozenset({"interval.start", "interval.end", "interval.key"})
"""What a ``where`` may say of the run."""
_QUOTED = re.compile(r""""[^"]*"|'[^']*'|`[^`]*`""")
_COMPARED = re.compile(r"[=<>]\s*([A-Za-z_]\w*\.\w+)")


def normalise_location(location: str) -> str:
    """``location``, with and without ``file://`` or a last slash the same.

    >>> normalise_location("file:///data/clean/")
    '/data/clean'
    """
    plain = location.rstrip("/")
    # Hadoop writes ``file:/data`` where people write ``file:///data``.
    return str(Path(plain.removeprefix("file:").removeprefix("//"))) if plain.startswith("file:") else plain


@dataclass(frozen=True, slots=True)
class Table:
    """A table by path (it has a ``/``) or by catalog name.

    >>> Table("/data/clean", partition_by=["day"]).is_path
    True
    """

    location: str
    format: str = "parquet"
    partition_by: tuple[str, ...] = ()
    mode: Literal["overwrite", "append"] = "overwrite"
    where: str | None = None
    """Declared reads only: the partitions read, ``"day = interval.start"``, joined by ``and``."""
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.partition_by, str):
            raise ValueError(f"Table({self.location!r}): partition_by must be a list of columns, not a string")
        # Authors write a list; a frozen value is hashed and compared.
        object.__setattr__(self, "partition_by", tuple(self.partition_by))
        if self.mode not in ("overwrite", "append"):
            rule = f"mode must be 'overwrite' or 'append', not {self.mode!r}"
            way_out = "rows that replace others are a function's to write: @task.spark_stream_sink in a stream"
            raise ValueError(f"Table({self.location!r}): {rule}: {way_out}")

    def find_mistake(self) -> str:
        """What is wrong with the table, whatever step it belongs to; empty if nothing is."""
        if not isinstance(self.location, str) or not self.location:
            return f"Table({self.location!r}): the location must be a path or a catalog name"
        if "{{" in self.location or "{%" in self.location:
            return f"Table({self.location!r}): a location is not rendered; write one table with partition_by instead"
        if self.where is None:
            return ""
        # Within quotes a dotted name is a text or a column's name.
        unquoted = _QUOTED.sub("", self.where)
        unknown = [name for name in _COMPARED.findall(unquoted) if name not in INTERVAL_NAMES]
        if unknown:
            known = ", ".join(sorted(INTERVAL_NAMES))
            return f"Table({self.location!r}): where has unknown name {unknown[0]!r}; known are {known}"
        return ""

    @property
    def is_path(self) -> bool:
        """Whether the location is a path; a catalog's names have no slash."""
        return "/" in self.location

    @property
    def is_replaced_whole(self) -> bool:
        """Whether a write leaves nothing of others in it, so that who looks can tell whose rows it holds."""
        return self.is_path and self.format in FILE_FORMATS and self.mode == "overwrite" and not self.partition_by

    @property
    def is_dated(self) -> bool:
        """Whether the run's interval says what is read of it."""
        return self.where is not None and any(name in _QUOTED.sub("", self.where) for name in INTERVAL_NAMES)

    @property
    def key(self) -> str:
        """The location, the same however it is written: what leases and commits of the table are filed under."""
        return normalise_location(self.location)

    @property
    def uri(self) -> str:
        """The asset URI of the table."""
        if not self.is_path:
            return f"spark://{self.location}"
        return self.location if "://" in self.location else f"file://{self.location}"
