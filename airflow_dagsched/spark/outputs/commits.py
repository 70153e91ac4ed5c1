"""Commit records: what a step's output is, once it is there.

::

    <home>/commits/<output>/<interval>/0000000001.json
                                       0000000002.json    <- the newest is the output

A record is created exclusively, complete, and never changed. Until then nothing was written, after that all
was: who finds the record may finish what its writer still had to do (``swap``). Its number is that of the lease it
was written under (``leases``), so what a writer commits that has lost its lease is older than what comes after.

Whoever finds a writer dead, or lost, before its record *refuses* the record: takes its number with a text that is none.
So a commit was made, or never will be, whatever the writer does when it wakes; if it lives it takes the next number.

A record that cannot be read counts as not there: what it stands for is made again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.keys import digest_parts
from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass
from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.outputs.homes import Home, Homes
from airflow_dagsched.spark.session.observed import Counted

# Ten digits, so that names sort as the numbers do.
_RECORD = re.compile(r"(\d{10})\.json")
REFUSED = '{"refused": true}'
"""Text in place of a record that is not to be made."""

Files = tuple[tuple[str, int], ...]
"""Path, relative to the table or dataset, and bytes of each file, by path."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What is about to be written, for what, and by whom. See ``Committed``."""

    output: str
    interval: str
    fingerprint: str
    run_id: str
    try_id: TryId
    writer: str = ""
    task: str = ""

    def make_record(self, generation: int, **written: Any) -> Committed:
        """The record of what was written; ``written`` are the other fields of ``Committed``."""
        who = {each.name: getattr(self, each.name) for each in fields(self)}
        return Committed(generation=generation, **who, **written)


NOT_STORED = "airflow_dagsched: this was not stored, since nobody read it when the same code last ran"
"""In the message of who computes a column that was not, or executes rows of which some were not."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Of what a dataset has some columns, or rows."""

    whole: str
    """All columns that the step made: Spark's JSON."""
    way: str
    """Digest of the code that said what is read."""
    where: tuple[str, ...] = ()
    """What the stored rows fulfil, as SQL."""
    counted: Counted | None = None
    """All rows that the step made, where not all are stored."""


@dataclass(frozen=True, slots=True)
class Committed:
    """One output of one step for one interval. Unknown numbers are None."""

    output: str
    """Location of the table, or ``dag/dataflow/step/output``."""
    interval: str
    generation: int
    fingerprint: str
    run_id: str
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
    mode: Literal["overwrite", "append"] = "overwrite"
    writer: str = ""
    """``dag/dataflow/step``: several may write one table. Empty in records that are older than this field."""
    try_id: TryId = field(default_factory=TryId)
    task: str = ""
    """``dag/dataflow/group``: the launch task that ``try_id`` is a try of."""
    files: Files = ()
    """What was written. Empty in records that are older than this field, too, and where a format keeps its own."""
    whole: str = ""
    """As ``schema``, of all columns that the step made, where not all were stored, or not all rows; else empty."""
    way: str = ""
    """Digest of the code that said what is read, where not all was stored."""
    where: tuple[str, ...] = ()
    """What the rows fulfil that were stored, as SQL; all were where nothing is asked of them."""
    stored_rows: int | None = None
    """How many these are, of ``rows``; None: all, or unknown."""


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
    """The number of a record is taken: the next one may not be. Nothing was changed."""

    output: str
    interval: str
    generation: int

    def __str__(self) -> str:
        return (
            f"{self.output}, interval {self.interval}: generation {self.generation} is not committed: another driver "
            "took its number. Nothing was changed: a retry commits the next"
        )


class CommitLog:
    """The records that a driver sees."""

    def __init__(self, store: Store, work_dir: str, homes: Homes | None = None) -> None:
        self.homes = homes if homes is not None else Homes(store, work_dir)
        self._moved: set[tuple[str, str]] = set()
        """Outputs and intervals of tables that have no records in the work dir, and never will."""

    def find_latest(self, output: str, interval: str, writer: str = "") -> Committed | None:
        """The newest commit, by whatever run; of ``writer`` if given, and a record without a writer is anyone's."""
        found = self._read_newest_first(output, interval)
        return next((each for each in found if not writer or each.writer in ("", writer)), None)

    def find_written_over(self, committed: Committed) -> frozenset[str]:
        """Partitions that another writer has overwritten since, for the same interval; "" for the whole table."""
        found: set[str] = set()
        for each in self._read_newest_first(committed.output, committed.interval):
            # Newest first: what follows came before it.
            if each.generation <= committed.generation:
                break
            if each.mode == "overwrite" and each.writer != committed.writer:
                found.update(each.partitions or ("",))
        return frozenset(found)

    def find_of_task(self, output: str, interval: str, run_id: str, task: str) -> Committed | None:
        """The newest commit made by any try of the launch task ``task`` in run ``run_id``."""
        found = self._read_newest_first(output, interval)
        return next((each for each in found if (each.run_id, each.task) == (run_id, task)), None)

    def find_earlier(self, output: str, interval: str, writer: str) -> tuple[Committed | None, bool]:
        """The newest commit of ``writer``, and whether it surely is: no newer record is torn, and there is one."""
        for _, store, path in self._list_records(output, interval):
            found = self.read(path, store)
            if found is not None and found.writer in ("", writer):
                return found, True
            # Torn: it may have been this writer's, so what is older is no sure answer.
            if found is None and not _is_refused(store, path):
                return self.find_latest(output, interval, writer), False
        return None, False

    def folders_before(self, committed: Committed) -> frozenset[str]:
        """Where the files of its writer's earlier commits may be: all of these, for the swap of any may have been cut
        short by someone who removed its journal.
        """
        found = self._read_newest_first(committed.output, committed.interval)
        older = (each for each in found if each.generation < committed.generation and each.tag)
        return frozenset(
            folder for each in older if each.writer in ("", committed.writer) for folder in each.partitions or ("",)
        )

    def get_last_generation(self, output: str, interval: str) -> int:
        """The highest generation taken, 0 for none."""
        return max((generation for generation, _, _ in self._list_records(output, interval)), default=0)

    def get_record_path(self, output: str, interval: str, generation: int) -> str:
        """Path of the record."""
        folder = self.homes.of(output).get_folder("commits", output, interval)
        return join_path(folder, f"{generation:010d}.json")

    def get_intent_path(self, output: str, interval: str, writer: str) -> str:
        """Path where ``writer`` says that it is about to append."""
        return join_path(
            self.homes.of(output).get_folder("commits", output, interval), f"{digest_parts(writer)}.intent"
        )

    def commit_record(self, committed: Committed) -> None:
        """Make ``committed`` true. Raises ``CommitRefused`` if its generation is taken."""
        path = self.get_record_path(committed.output, committed.interval, committed.generation)
        text = json.dumps(encode_plain(committed), sort_keys=True, indent=1)
        # The commit itself: of all that write this number one wins, and the text is there with the name.
        if not self.homes.of(committed.output).store.create_exclusive(path, text):
            raise CommitRefused(committed.output, committed.interval, committed.generation)

    def refuse(self, path: str, tag: str, store: Store) -> bool:
        """Whether the record at ``path`` is no commit of files with ``tag``, and from now on never will be."""
        shared = self.homes.shared
        # The path tells the store: records of what has no home of its own are in the work dir.
        store = shared.store if path.startswith(f"{shared.root}/") else store
        if store.create_exclusive(path, REFUSED):
            return True
        found = self.read(path, store)
        # Another tag: another writer's commit, under the number that this one wanted.
        return found is None or found.tag != tag

    def read(self, path: str, store: Store | None = None) -> Committed | None:
        """The record at ``path``, in ``store`` if that is not the work dir's; None if there is none to be read."""
        try:
            return parse_dataclass(Committed, (store or self.homes.shared.store).read_text(path))
        except FileNotFoundError:
            return None

    def find_at_path(self, folder: str, path: str) -> Committed | None:
        """The newest record in ``folder`` of the work dir whose data is at ``path``."""
        store = self.homes.shared.store
        names = sorted((each.name for each in store.list(folder) if _RECORD.fullmatch(each.name)), reverse=True)
        found = (self.read(join_path(folder, name)) for name in names)
        return next((each for each in found if each is not None and each.path == path), None)

    def _list_records(self, output: str, interval: str) -> list[tuple[int, Store, str]]:
        """Generation, store and path of each record, newest first; with those from before the output had a home."""
        found = self._list_numbered(self.homes.of(output), output, interval)
        if self.homes.of(output) != self.homes.shared and (output, interval) not in self._moved:
            # The output's records from before it had a home; asked again only while there are some.
            older = self._list_numbered(self.homes.shared, output, interval)
            found += older
            self._moved |= set() if older else {(output, interval)}
        return sorted(found, key=lambda each: each[0], reverse=True)

    def _list_numbered(self, home: Home, output: str, interval: str) -> list[tuple[int, Store, str]]:
        folder = home.get_folder("commits", output, interval)
        matches = (_RECORD.fullmatch(entry.name) for entry in home.store.list(folder))
        return [(int(match[1]), home.store, join_path(folder, match[0])) for match in matches if match]

    def _read_newest_first(self, output: str, interval: str) -> Iterator[Committed]:
        for _, store, path in self._list_records(output, interval):
            committed = self.read(path, store)
            if committed is not None:
                yield committed


def _is_refused(store: Store, path: str) -> bool:
    try:
        return store.read_text(path) == REFUSED
    except FileNotFoundError:
        return True
