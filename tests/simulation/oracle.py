"""What must be in the table after any history, told from the commit records alone and the order they were made in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.wire import parse_dataclass
from airflow_dagsched.spark.outputs.commits import Committed
from tests.simulation.tree import Folder, Tree

Row = tuple[str, str]
"""Folder, relative to the table, and text of a file in it."""


@dataclass
class Oracle:
    """Follows the records of one history."""

    tree: Tree
    rows: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    """Of each write, by tag."""
    records: dict[str, Committed] = field(default_factory=dict)
    """By path, in the order they were made, but for those that came after a newer one of their interval: these count
    for nothing.
    """
    tries: set[tuple[str, str, TryId]] = field(default_factory=set)
    """Run, writer and try of all commits that counted; a dataset, with a folder of its own, counts whenever."""
    last: dict[tuple[str, str], Committed] = field(default_factory=dict)
    """What each interval and writer committed last to the table, whatever became of the record."""
    content: dict[str, frozenset[str]] = field(default_factory=dict)
    """Folder -> tags in it, now."""
    history: dict[str, list[frozenset[str]]] = field(default_factory=dict)
    """Folder -> all contents it ever had."""
    violations: list[str] = field(default_factory=list)

    def appeared(self, path: str, text: str) -> None:
        """A file was created exclusively."""
        record = parse_dataclass(Committed, text) if "/commits/" in path else None
        if record is not None:
            self._commit(path, record)

    def _commit(self, path: str, record: Committed) -> None:
        mates = [(at, each) for at, each in self.records.items() if _interval(each) == _interval(record)]
        if any(each.generation >= record.generation and at != path and self.tree.find(at) for at, each in mates):
            if record.table is None:
                self.tries.add((record.run_id, record.writer, record.try_id))
            return
        older = [each for _, each in mates if _run(each) == _run(record) and each.try_id > record.try_id]
        if older:
            self.violations.append(f"{record.try_id} commits after {older[-1].try_id} of run {record.run_id}")
        self.records[path] = record
        self.tries.add((record.run_id, record.writer, record.try_id))
        if record.table is not None:
            self._apply(record, self.last.get((record.interval, record.writer)))
            self.last[record.interval, record.writer] = record

    def _apply(self, record: Committed, before: Committed | None) -> None:
        content = dict(self.content)
        if before is not None and before.tag:
            content = {folder: tags - {before.tag} for folder, tags in content.items()}
        for folder in {folder for folder, _ in self.rows.get(record.tag, ())}:
            kept = content.get(folder, frozenset()) if record.mode == "append" else frozenset()
            content[folder] = kept | {record.tag}
        for folder, tags in content.items():
            if tags != self.content.get(folder, frozenset()):
                self.history.setdefault(folder, [frozenset()]).append(tags)
        self.content = content

    def wrong(self, table: str) -> Iterator[str]:
        """What is wrong with what is there now."""
        there, wanted = Counter(visible(self.tree, table)), self._expected()
        yield from (f"lost {'/'.join(row)}" for row in sorted(wanted - there))
        yield from (f"not wanted {'/'.join(row)}" for row in sorted(there - wanted))
        for path, record in self.records.items():
            if record.table is None and self.tree.find(path) and self._counts(path, record):
                gone = [name for name, _ in record.files if not self.tree.find(f"{record.path}/{name}")]
                yield from (f"lost {record.path}/{name}" for name in gone)

    def _counts(self, path: str, record: Committed) -> bool:
        """Whether no newer record of the output and interval is there."""
        mates = ((at, each) for at, each in self.records.items() if _interval(each) == _interval(record))
        return not any(each.generation > record.generation and self.tree.find(at) for at, each in mates)

    def _expected(self) -> Counter[Row]:
        """What must be in the table."""
        tagged = ((folder, tag) for folder, tags in self.content.items() for tag in tags)
        return Counter(row for folder, tag in tagged for row in self.rows[tag] if row[0] == folder)

    def was(self, folder: str, seen: frozenset[str], partly: bool) -> bool:
        """Whether the folder ever had this content, or ``partly`` a part of it."""
        past = self.history.get(folder, [frozenset()])
        return any(seen <= tags if partly else seen == tags for tags in past)


def _interval(record: Committed) -> tuple[str, str]:
    return record.output, record.interval


def _run(record: Committed) -> tuple[str, str]:
    return record.run_id, record.writer


def visible(tree: Tree, table: str) -> Iterator[Row]:
    """Files that a reader of the table sees, but for those that only give it its schema."""
    for path, file in tree.files(table):
        folder, _, name = path[len(table) + 1 :].rpartition("/")
        if not name.startswith((".", "_", "dagsched-empty-")):
            yield folder, file.text


def rubbish(tree: Tree) -> Iterator[str]:
    """Files and folders that must be gone once all is old and ``clean`` was there."""
    for path, _ in tree.files():
        name = path.rpartition("/")[2]
        if name.startswith((".draft-", ".dagsched-probe-")) or "/leases/" in path or name.endswith(".intent"):
            yield path
    for home in _coordination(tree):
        node = tree.find(home)
        assert isinstance(node, Folder)
        yield from (f"{home}/{name}" for name in node.children if name not in ("commits", "leases", "lock"))


def _coordination(tree: Tree) -> Iterator[str]:
    """Hidden folders beside tables."""
    data = tree.folder("/data")
    yield from (f"/data/{name}" for name in data.children if name.startswith(".dagsched-"))
