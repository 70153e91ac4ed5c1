"""What may go from a work dir, and from beside its tables, once it is older than the retention.

::

    datasets/<output>/<interval>/<generation>-<writer>/   any that is old enough
    commits/<output>/<interval>/<generation>.json         a dataset's with its data; of a table all but the newest of
                                                          each writer, which its next write of that interval needs
                             /<writer>.intent             once that writer's record is there
    leases/<output>/<interval>/<generation>.json          long expired
    runs/<dag>/<run>/                                     manifests and events
    ends/<step>/<run>/                                    of steps without rows: retries of the run need them
    **/.draft-*                                           of a file that was not finished
    <parent of table>/.dagsched-<table>/commits, leases   as above
                                       /<draft>/          of a writer that died before it committed
    <table>/**/.dagsched-probe-*                          of one that died as it tried the way in
    <temporary files>/dagsched-launch-*/                  private files of launches that died

Older than the retention means that no run still reads it: choose it longer than the longest run. Nothing of an interval
goes while someone holds its lease. A dataset that is gone is made again by who needs it. What cannot be read, or is
something else than it should be, stops nothing: it is said, and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from airflow_dagsched.launch.protocol.keys import digest_parts
from airflow_dagsched.launch.protocol.wire import fit_dataclass
from airflow_dagsched.launch.retention.inventory import Files, Inventory, Listed, Trouble, get_parent, join_path
from airflow_dagsched.launch.retention.records import Record, Term, find_superseded, read_record, strip_scheme

PROBE = ".dagsched-probe-"
APART = frozenset({"commits", "leases", "lock", "stream"})
"""Folders beside a table that are no drafts."""


PRIVATE = "dagsched-launch-"
"""How the names of a launch's private folders begin: nobody else's temporary files do."""


@dataclass(frozen=True, slots=True)
class Expired:
    """What to remove, and what nobody can tell about."""

    paths: tuple[str, ...]
    """In this order: a record goes before the rows that it points to."""
    troubles: tuple[Trouble, ...] = ()


@dataclass(frozen=True, slots=True)
class _Interval:
    """One interval of one output: where its files are."""

    home: str
    name: str
    """``<output>/<interval>``, or ``<interval>`` beside a table."""

    def name_folder(self, kind: str) -> str:
        return join_path(self.home, kind, self.name)


def find_expired(work_dir: str, now: float, keep_s: float, files: Files, temporary: str = "") -> Expired:
    """Files and folders to remove. ``now`` is in seconds since 1970; reads names, dates and records.

    :param temporary: folder of the system's temporary files; empty: they are not looked at.
    """
    inventory = Inventory(files)
    survey = _Survey(inventory, now, now - keep_s)
    root = strip_scheme(work_dir)
    paths = [*survey.list_work_dir(root)]
    for table in survey.list_tables(root):
        paths += survey.list_beside_table(join_path(get_parent(table), f".dagsched-{table.rpartition('/')[2]}"))
        paths += survey.list_probes(table)
    if temporary:
        paths += survey.list_private(temporary)
    return Expired(tuple(dict.fromkeys(paths)), inventory.troubles)


def remove_expired(paths: Iterable[str], files: Files) -> tuple[Trouble, ...]:
    """Remove what ``find_expired`` found, and folders that are empty then. What is gone already is fine, what cannot be
    removed is said.
    """
    inventory = Inventory(files)
    for path in paths:
        if inventory.remove(path):
            for folder in (get_parent(path), get_parent(get_parent(path))):  # <interval>, and <output>
                inventory.remove_empty(folder)
    return inventory.troubles


class _Survey:
    """One look at all there is. ``before``: what is older may go."""

    def __init__(self, inventory: Inventory, now: float, before: float) -> None:
        self._inventory = inventory
        self._now = now
        self._before = before

    def list_work_dir(self, root: str) -> Iterator[str]:
        """What goes from the work dir itself."""
        intervals = self._list_intervals(root, depth=2)
        # Once for each interval: looking at a lease means reading its file.
        held = {each for each in intervals if self._is_held(each)}
        going = {path for each in intervals if each not in held for path in self._list_datasets(each)}
        for each in intervals:
            if each not in held:
                yield from self._list_records(each, going)
        # After the records that point to them: who is stopped in between leaves rows that nobody knows, and no record
        # of rows that are gone.
        yield from sorted(going)
        yield from (lease for each in intervals for lease in self._list_leases(each))
        for kind in ("runs", "ends"):
            yield from self._list_runs(join_path(root, kind))
        for kind in ("commits", "leases", "tables"):
            yield from self._list_draft_files(join_path(root, kind), depth=3)

    def list_beside_table(self, home: str) -> Iterator[str]:
        """What goes from the hidden folder beside a table."""
        intervals = self._list_intervals(home, depth=1)
        for each in intervals:
            if not self._is_held(each):
                yield from self._list_records(each, set(), of_table=True)
            yield from self._list_leases(each)
        for kind in ("commits", "leases"):
            yield from self._list_draft_files(join_path(home, kind), depth=2)
        yield from self._list_drafts(home)

    def list_tables(self, root: str) -> tuple[str, ...]:
        """Folders of the tables that are written from this work dir."""
        found = set()
        for entry in self._inventory.list_folder(join_path(root, "tables")):
            table = self._inventory.read_json(join_path(root, "tables", entry.name)).get("table")
            if isinstance(table, str):
                found.add(strip_scheme(table))
        for each in self._list_intervals(root, depth=2):
            found.update(record.path for record in self._read_records(each) if record.of_table)
        return tuple(sorted(table for table in found if table.startswith("/")))

    def list_probes(self, table: str) -> Iterator[str]:
        """Hidden files with which writers that died tried the way into the table."""
        for entry in self._inventory.list_folder(table):
            path = join_path(table, entry.name)
            if entry.name.startswith(PROBE):
                yield from [path] if entry.modified < self._before else []
            elif entry.is_folder and entry.name[0] not in "._":  # drafts and Spark's own folders have no probes
                yield from self.list_probes(path)

    def list_private(self, temporary: str) -> Iterator[str]:
        """Private files of launches that died: they hold arguments, and with them passwords."""
        for entry in self._inventory.list_folder(temporary):
            path = join_path(temporary, entry.name)
            if (
                entry.name.startswith(PRIVATE)
                and entry.is_mine  # the folder of temporary files is everybody's
                and self._inventory.find_newest(path, entry) < self._before
            ):
                yield path

    def _is_old(self, path: str, entry: Listed) -> bool:
        """Whether nothing in it changed for as long as the retention."""
        return self._inventory.find_newest(path, entry) < self._before

    def _list_intervals(self, home: str, depth: int) -> tuple[_Interval, ...]:
        kinds = ("commits", "leases", "datasets")
        names = {name for kind in kinds for name, _ in self._inventory.walk_folders(join_path(home, kind), depth)}
        return tuple(_Interval(home, name) for name in sorted(names))

    def _is_held(self, interval: _Interval) -> bool:
        """Whether someone may be at work on it: a lease that cannot be read lasts as long as what is read."""
        for path, modified in self._inventory.list_files(interval.name_folder("leases"), ".json"):
            term = fit_dataclass(Term, self._inventory.read_json(path))
            if modified >= self._before if term is None else term.expires > self._now:
                return True
        # Leases that nobody may look at may be held.
        return not self._inventory.is_known(interval.name_folder("leases"))

    def _list_datasets(self, interval: _Interval) -> Iterator[str]:
        folder = interval.name_folder("datasets")
        for entry in self._inventory.list_folder(folder):
            path = join_path(folder, entry.name)
            if self._is_old(path, entry):
                yield path

    def _read_records(self, interval: _Interval) -> tuple[Record, ...]:
        found = self._inventory.list_files(interval.name_folder("commits"), ".json")
        return tuple(read_record(path, modified, self._inventory.read_json(path)) for path, modified in found)

    def _list_records(self, interval: _Interval, going: set[str], of_table: bool = False) -> Iterator[str]:
        records = [record for record in self._read_records(interval) if self._inventory.is_known(record.file)]
        gone = find_superseded(records)
        for record in records:
            if record.modified < self._before and (record in gone or self._has_no_rows(record, going, of_table)):
                yield record.file
        writers = {digest_parts(record.writer) for record in records if record.is_whole}
        for path, modified in self._inventory.list_files(interval.name_folder("commits"), ".intent"):
            if path.rpartition("/")[2].removesuffix(".intent") in writers and modified < self._before:
                yield path

    def _has_no_rows(self, record: Record, going: set[str], of_table: bool) -> bool:
        """Whether the record is a dataset's whose folder is gone, or goes now.

        A torn one is no one's; but beside a table it says that there are rows of which nobody knows, and stays.
        """
        if not record.is_whole:
            return record.is_refused or not of_table
        if record.of_table:
            return False
        return record.path in going or not self._inventory.exists(record.path)

    def _list_leases(self, interval: _Interval) -> Iterator[str]:
        for path, modified in self._inventory.list_files(interval.name_folder("leases"), ".json"):
            term = fit_dataclass(Term, self._inventory.read_json(path))
            last = modified if term is None else max(modified, term.expires)
            if last < self._before and self._inventory.is_known(path):
                yield path

    def _list_runs(self, kind: str) -> Iterator[str]:
        """What single runs left."""
        for name, entry in self._inventory.walk_folders(kind, depth=2):
            path = join_path(kind, name)
            if self._is_old(path, entry):
                yield path

    def _list_draft_files(self, folder: str, depth: int) -> Iterator[str]:
        """Half-written files; what else is there is looked at elsewhere."""
        for entry in self._inventory.list_folder(folder):
            path = join_path(folder, entry.name)
            if entry.is_folder and depth > 1:
                yield from self._list_draft_files(path, depth - 1)
            elif entry.name.startswith(".draft-") and entry.modified < self._before:
                yield path

    def _list_drafts(self, home: str) -> Iterator[str]:
        """Not those with a journal whose record is there: the next reader or writer of the table finishes them."""
        for entry in self._inventory.list_folder(home):
            path = join_path(home, entry.name)
            if entry.name in APART or not (entry.is_folder or entry.name.startswith(".draft-")):
                continue
            if self._is_old(path, entry) and not self._is_committed(path):
                yield path

    def _is_committed(self, draft: str) -> bool:
        """Whether what the draft holds was committed, or nobody can tell."""
        journal = join_path(draft, "swap.json")
        if not self._inventory.exists(journal):
            return False
        record = self._inventory.read_json(journal).get("record")
        return not isinstance(record, str) or not self._inventory.is_known(journal) or self._inventory.exists(record)
