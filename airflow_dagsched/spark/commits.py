"""Commit records: what a step's output is, once it is there.

::

    <work_dir>/commits/<output>/<interval>/0000000001.json
                                           0000000002.json    <- the newest is the output

A record is created exclusively, complete, and never changed. Until then nothing was written, after that all
was: who finds the record may finish what its writer still had to do (``swap``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.keys import safe, short
from airflow_dagsched.launch.wire import decode, encode
from airflow_dagsched.spark.store import Store, join

_RECORD = re.compile(r"(\d{10})\.json")


@dataclass(frozen=True, slots=True)
class Origin:
    """What is about to be written, for what, and by whom. See ``Committed``."""

    output: str
    interval: str
    fingerprint: str
    run_id: str
    clear_number: int
    writer: str = ""

    def committed(self, generation: int, **written: Any) -> Committed:
        """The record of what was written; ``written`` are the other fields of ``Committed``."""
        who = {field.name: getattr(self, field.name) for field in fields(self)}
        return Committed(generation=generation, **who, **written)


@dataclass(frozen=True, slots=True)
class Committed:
    """One output of one step for one interval. Unknown numbers are None."""

    output: str
    """Location of the table, or ``dag/dataflow/step/output``."""
    interval: str
    generation: int
    fingerprint: str
    run_id: str
    clear_number: int
    path: str
    """Where the data is: the dataset's own folder, or the table."""
    table: str | None
    """Asset URI if a table was written."""
    rows: int | None
    bytes: int | None
    schema: str
    """Spark's JSON."""
    partitions: tuple[str, ...]
    """Folders written, relative to the table, by name; none for a table without partitions."""
    format: str
    tag: str = ""
    """Part of the name of each file this commit wrote into a table of files."""
    mode: str = "overwrite"
    """Or ``append``."""
    writer: str = ""
    """``dag/dataflow/step``: several may write one table. Empty in records that are older than this field."""


class WriteRefused(DagschedError):
    """This driver is not the writer of an output: nothing of it was changed."""


@dataclass
class OutputGone(DagschedError):
    """A commit's data is not there any more."""

    committed: Committed
    found: str

    def __str__(self) -> str:
        which = f"generation {self.committed.generation} of {self.committed.output}, interval {self.committed.interval}"
        return (
            f"{which} (run {self.committed.run_id}) cannot be read at {self.committed.path}: {self.found}. "
            "It was removed, or written over by another interval or program: clear the step that writes it"
        )


@dataclass
class CommitRefused(WriteRefused):
    """Someone else is, or was, the writer of this generation. Nothing was changed."""

    output: str
    interval: str
    generation: int
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.output}, interval {self.interval}: generation {self.generation} is not committed: {self.reason}. "
            "Nothing was changed; the newer writer's output stands"
        )


class CommitLog:
    """The records under one work dir."""

    def __init__(self, store: Store, work_dir: str) -> None:
        self._store = store
        self._root = join(work_dir, "commits")

    def latest(self, output: str, interval: str, writer: str = "") -> Committed | None:
        """The newest commit, by whatever run; of ``writer`` if given, and a record without a writer is anyone's."""
        found = self._newest_first(output, interval)
        return next((each for each in found if not writer or each.writer in ("", writer)), None)

    def written_over(self, committed: Committed) -> frozenset[str]:
        """Partitions that another writer has overwritten since, for the same interval; "" for the whole table."""
        found: set[str] = set()
        for each in self._newest_first(committed.output, committed.interval):
            if each.generation <= committed.generation:
                break
            if each.mode == "overwrite" and each.writer != committed.writer:
                found.update(each.partitions or ("",))
        return frozenset(found)

    def of_run(self, output: str, interval: str, run_id: str) -> Committed | None:
        """The newest commit made by ``run_id``."""
        return next((each for each in self._newest_first(output, interval) if each.run_id == run_id), None)

    def last_generation(self, output: str, interval: str) -> int:
        """The highest generation taken, 0 for none."""
        return max(self._generations(output, interval), default=0)

    def record(self, output: str, interval: str, generation: int) -> str:
        """Path of the record."""
        return join(self._root, safe(output), safe(interval), f"{generation:010d}.json")

    def intent(self, output: str, interval: str, writer: str) -> str:
        """Path where ``writer`` says that it is about to append."""
        return join(self._root, safe(output), safe(interval), f"{short(writer)}.intent")

    def commit(self, committed: Committed) -> None:
        """Make ``committed`` true. Raises ``CommitRefused`` if its generation is taken."""
        path = self.record(committed.output, committed.interval, committed.generation)
        if not self._store.create_exclusive(path, json.dumps(encode(committed), sort_keys=True, indent=1)):
            reason = "another writer committed it"
            raise CommitRefused(committed.output, committed.interval, committed.generation, reason)

    def read(self, path: str) -> Committed | None:
        """The record at ``path``; None if there is none, or its writer died while it wrote it."""
        try:
            return decode(Committed, json.loads(self._store.read_text(path)))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def _generations(self, output: str, interval: str) -> list[int]:
        folder = join(self._root, safe(output), safe(interval))
        found = (_RECORD.fullmatch(entry.name) for entry in self._store.list(folder))
        return [int(match[1]) for match in found if match]

    def _newest_first(self, output: str, interval: str) -> Iterator[Committed]:
        for generation in sorted(self._generations(output, interval), reverse=True):
            committed = self.read(self.record(output, interval, generation))
            if committed is not None:
                yield committed
