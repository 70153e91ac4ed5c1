"""Tables that are plain folders of files: written aside, committed, then swapped in (``swap``).

A commit is recognised by its tag, the id that Spark puts into the name of each file of one write. So a
reader gets exactly what one commit wrote, also where other intervals write the same table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_dagsched.launch.tables import Table
from airflow_dagsched.spark.commits import CommitLog, Committed, Origin, OutputGone
from airflow_dagsched.spark.leases import Keeper
from airflow_dagsched.spark.observed import NO_GLOB, metrics_of, observe, quoted
from airflow_dagsched.spark.store import Store, join, walk
from airflow_dagsched.spark.stores import open_store
from airflow_dagsched.spark.swap import EMPTY, Swap, draft_files, tagged
from airflow_dagsched.spark.table_commit import TableCommits, draft_path

_TAG = re.compile(r"part-\d+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class Draft:
    """What was written aside."""

    folder: str
    rows: int | None
    bytes: int
    schema: StructType
    folders: tuple[str, ...]
    tag: str
    empty: str
    """Name of the file that stands for no rows at all in a partitioned table; mostly none."""


class PathTables:
    """Writes and reads tables by path."""

    def __init__(
        self,
        spark: SparkSession,
        commits: CommitLog,
        keeper: Keeper,
        follow: Callable[[Swap], None] = lambda swap: None,
    ) -> None:
        self._spark = spark
        self._commits = commits
        self._keeper = keeper
        self._table_commits = TableCommits(commits, keeper, follow)

    def write(self, df: DataFrame, table: Table, origin: Origin, *, catalog: str = "") -> Committed:
        """Write and commit; blocks until readers see it. Raises ``WriteRefused`` if another is the writer."""
        store, root = self._open(table.location)
        with self._keeper.holding(origin.output, origin.interval) as lease:
            earlier = self._commits.latest(origin.output, origin.interval, origin.writer)
            generation = self._commits.last_generation(origin.output, origin.interval) + 1
            folder = draft_path(root, origin.interval, lease)
            try:
                draft = _write_draft(df, table, store, folder)
            except BaseException:
                store.delete(folder)
                raise
            committed = _committed(origin, generation, table, root, draft)
            if catalog:
                committed = replace(committed, table=Table(catalog).uri)
            swap = _swap(self._commits, committed, earlier, table, draft, catalog)
            self._table_commits.commit(store, committed, swap, lease)
        return committed

    def finish_torn(self, location: str) -> None:
        """Finish what a driver that died had committed of the table."""
        self._table_commits.finish_torn(*self._open(location))

    def close(self) -> None:
        """Remove what was replaced."""
        self._table_commits.close()

    def read(self, committed: Committed, session: SparkSession, options: Mapping[str, str]) -> DataFrame:
        """The rows of this commit alone, with its schema. Raises ``OutputGone`` if they are not all there."""
        self.finish_torn(committed.path)
        schema = StructType.fromJson(json.loads(committed.schema))
        if not committed.tag:
            return session.createDataFrame([], schema)
        paths = self._paths(committed)
        reader = session.read.format(committed.format).options(**options).schema(schema)
        found = reader.option("basePath", committed.path).option(NO_GLOB, "false").load(list(paths))
        return found.select(*(quoted(name) for name in schema.names))

    def holds(self, committed: Committed) -> bool:
        """Whether all that the commit wrote is in the table."""
        self.finish_torn(committed.path)
        try:
            return not committed.tag or bool(self._paths(committed))
        except OutputGone:
            return False

    def _paths(self, committed: Committed) -> tuple[str, ...]:
        """Folders that hold this commit only, else its files in them."""
        store, _ = self._open(committed.path)
        paths: list[str] = []
        total = 0
        for folder in committed.partitions or ("",):
            files, size, alone = tagged(store, join(committed.path, folder), committed.tag)
            paths += [join(committed.path, folder)] if files and alone else files
            total += size
        if not paths or total != committed.bytes:
            raise OutputGone(committed, f"{total} of {committed.bytes} bytes are there")
        return tuple(paths)

    def _open(self, location: str) -> tuple[Store, str]:
        return open_store(self._spark, location), location.rstrip("/")


def _write_draft(df: DataFrame, table: Table, store: Store, folder: str) -> Draft:
    counted, observation = observe(df)
    writer = counted.write.format(table.format).options(**table.options)
    writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    (writer.partitionBy(*table.partition_by) if table.partition_by else writer).save(join(folder, "new"))
    folders, names, size = draft_files(store, folder)
    tags = {match[1] for name in names if (match := _TAG.search(name))}
    rows = metrics_of(observation).get("rows")
    if len(tags) > 1 or bool(tags) != bool(names) or (rows and not names):
        raise OSError(f"{folder}: {rows} rows written, but not in files with the id of one write: {names[:3]}")
    empty = "" if folders else _write_empty(df, table, store, folder)
    return Draft(folder, rows, size, df.schema, folders, "".join(tags), empty)


def _write_empty(df: DataFrame, table: Table, store: Store, folder: str) -> str:
    """A file without rows but with all columns: a partitioned table without partitions has no schema else."""
    nothing = df.sparkSession.createDataFrame([], df.schema).coalesce(1)
    nothing.write.format(table.format).options(**table.options).save(join(folder, "empty"))
    name = next(entry.name for _, entry in walk(store, join(folder, "empty")))
    store.rename(join(folder, "empty", name), join(folder, EMPTY + name))
    return EMPTY + name


def _committed(origin: Origin, generation: int, table: Table, root: str, draft: Draft) -> Committed:
    return origin.committed(
        generation,
        path=root,
        table=table.uri,
        rows=draft.rows,
        bytes=draft.bytes,
        schema=draft.schema.json(),
        partitions=draft.folders if table.partition_by else (),
        format=table.format,
        tag=draft.tag,
        mode=table.mode,
    )


def _swap(
    commits: CommitLog, committed: Committed, earlier: Committed | None, table: Table, draft: Draft, catalog: str
) -> Swap:
    return Swap(
        record=commits.record(committed.output, committed.interval, committed.generation),
        tag=draft.tag,
        table=committed.path,
        draft=draft.folder,
        mode=table.mode,
        folders=draft.folders,
        old_tag=earlier.tag if earlier else "",
        old_folders=(earlier.partitions or ("",)) if earlier and earlier.tag else (),
        empty=draft.empty,
        catalog=catalog,
    )
