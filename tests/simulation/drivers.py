"""Drivers as processes of a world: the product's own classes; only Spark's part of a write is another's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed, Narrowing, Origin, WriteRefused
from airflow_dagsched.spark.outputs.datasets import Datasets, list_files
from airflow_dagsched.spark.outputs.leases import Keeper
from airflow_dagsched.spark.outputs.path_tables import Draft, PathTables
from airflow_dagsched.spark.outputs.swap import EMPTY, list_draft_files
from airflow_dagsched.spark.outputs.table_commit import TableCommits
from tests.simulation.scenario import LEASE_S, Attempt
from tests.simulation.world import Process

NO_COLUMNS = '{"type": "struct", "fields": []}'
"""A schema that can be read: a record without one counts as gone."""
TABLE = "/data/clean"


@dataclass(frozen=True, slots=True)
class Schema:
    """Of the rows; Spark's is not needed here."""

    def json(self) -> str:
        return NO_COLUMNS


@dataclass(frozen=True, slots=True)
class Rows:
    """What stands for a DataFrame: the files that Spark would write."""

    tag: str
    """Part of the name of each file; which one a commit adds to it is the product's."""
    folders: tuple[str, ...]
    texts: tuple[str, ...]
    """Of the files of a folder: they tell which write, and which of its files, it is."""
    compute_s: float
    process: Process

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """Name and text of each file of a folder."""
        return tuple((f"part-{number:05d}-{self.tag}.parquet", text) for number, text in enumerate(self.texts))


def write_draft(rows: Rows, table: Table, store: Any, folder: str) -> Draft:
    """Stands for ``path_tables._write_draft``: the step's jobs, then its files in the draft."""
    rows.process.sleep(rows.compute_s)
    for part in rows.folders:
        for name, text in rows.files:
            store.put(join_path(folder, "new", part, name), text)
    files = list_draft_files(store, folder)
    empty = "" if files else f"{EMPTY}part-00000-{rows.tag}.parquet"
    if empty:
        store.put(join_path(folder, empty), "")
    return Draft(folder, len(files), Schema(), files, rows.tag if files else "", empty)


class SimTables(PathTables):
    """Tables in a simulated store."""

    def __init__(self, store: Store, commits: CommitLog, keeper: Keeper, process: Process) -> None:
        super().__init__(None, commits, keeper)
        self._store = store
        self._table_commits = TableCommits(commits, keeper, clock=process)

    def _open_table(self, location: str) -> tuple[Store, str]:
        return self._store, self._store.resolve(location.rstrip("/"))


class SimDatasets(Datasets):
    """Datasets in a simulated store."""

    def _write_files(
        self, df: Any, origin: Origin, generation: int, path: str, narrowed: Narrowing | None
    ) -> Committed:
        assert narrowed is None
        rows: Rows = df
        rows.process.sleep(rows.compute_s)
        store: Any = self._store
        for name, text in rows.files:
            store.put(join_path(path, name), text)
        files = list_files(store, path)
        shape = {"schema": NO_COLUMNS, "partitions": (), "format": "parquet", "bytes": None, "files": files}
        return origin.make_record(generation, path=path, table=None, rows=len(files), **shape)


class Driver:
    """What ``Outputs`` is made of."""

    def __init__(self, store: Store, process: Process, attempt: Attempt, location: str = TABLE) -> None:
        self.store = store
        self.attempt = attempt
        self.location = location
        self.log = CommitLog(store, attempt.work_dir)
        self.task = f"dag/flow/{attempt.step}"
        self.keeper = Keeper(
            self.log, run_id=attempt.run_id, try_id=attempt.try_id, task=self.task, lease_s=LEASE_S, clock=process
        )
        self.tables = SimTables(store, self.log, self.keeper, process)
        self.datasets = SimDatasets(store, attempt.work_dir, self.log, self.keeper)

    @property
    def origin(self) -> Origin:
        """What is written, and by whom."""
        attempt = self.attempt
        key = self.location if attempt.output == "table" else attempt.output
        return Origin(key, attempt.interval, attempt.code, attempt.run_id, attempt.try_id, self.task, self.task)

    def holds(self, committed: Committed) -> bool:
        """See ``Outputs.holds``."""
        if committed.table is not None:
            return self.tables.holds(committed)
        return self.datasets.holds(committed)

    def settle(self) -> None:
        """Finish what others left, as each driver does when it begins."""
        self.tables.settle(self.location, self.location)

    def run(self, rows: Rows) -> str:
        """The step's turn: reuse what is committed, else write; how that ended."""
        origin = self.origin
        if origin.output == self.location:
            self.settle()
        try:
            latest = self.log.find_latest(origin.output, origin.interval, origin.writer)
            if latest is not None and latest.fingerprint == origin.fingerprint and self.holds(latest):
                return "reused"
            self._write(rows, origin)
            return "committed"
        except WriteRefused as refused:
            return f"refused: {refused}"
        finally:
            self.keeper.close()
            self.tables.close()

    def _write(self, rows: Rows, origin: Origin) -> None:
        if origin.output != self.location:
            self.datasets.write(rows, origin)
            return
        by = () if rows.folders == ("",) else ("p",)
        self.tables.write(rows, Table(self.location, "parquet", by, self.attempt.mode), origin)
