"""Tables that are plain folders of files: written aside, committed, then swapped in (``swap``).

A commit is recognised by its tag, the id that Spark puts into the name of each file of one write. So a
reader gets exactly what one commit wrote, also where other intervals write the same table. A second part of the name
stands for writer and interval, the same whenever these write again:

    part-00000-8c1f…e2-d0123456789abcdef-c000.snappy.parquet
               ^ tag   ^ key

So what a step wrote before is found in the table itself and replaced, whatever became of the commit records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_dagsched.launch.protocol.keys import digest_parts
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.files.store import Store, join_path, walk_files
from airflow_dagsched.spark.files.stores import open_store
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed, Files, Origin, OutputGone
from airflow_dagsched.spark.outputs.leases import Keeper
from airflow_dagsched.spark.outputs.schemas import read_schema
from airflow_dagsched.spark.outputs.swap import EMPTY, Swap, find_tagged, list_draft_files, list_folders
from airflow_dagsched.spark.outputs.table_checks import find_missing_files
from airflow_dagsched.spark.outputs.table_commit import TableCommits, make_draft_path
from airflow_dagsched.spark.session.observed import NO_GLOB, count_all, quote_name

# part-<task>-<id of the write>: so Spark's ``HadoopMapReduceCommitProtocol.getFilename`` names files.
_TAG = re.compile(r"part-\d+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class Draft:
    """What was written aside."""

    folder: str
    rows: int | None
    schema: StructType
    files: Files
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
        store, root = self._open_table(table.location)
        self._commits.homes.settle(origin.output, store, root)
        with self._keeper.hold_lease(origin.output, origin.interval) as lease:
            folder = make_draft_path(root, origin.interval, lease)
            try:
                draft = _add_key(store, _write_draft(df, table, store, folder), _make_key(table, origin))
            except BaseException:
                store.delete(folder)
                self._keeper.check_lease(lease)  # who took it removed the draft: that is the reason then
                raise
            committed = _make_record(origin, lease.generation, table, root, draft)
            if catalog:
                committed = replace(committed, table=Table(catalog).uri)
            swap = _make_swap(committed, table, draft, _make_key(table, origin), catalog)
            return self._table_commits.commit_table(store, committed, swap, lease)

    def settle(self, output: str, location: str) -> None:
        """Say where the table is, and finish what a driver that died had committed of it."""
        store, root = self._open_table(location)
        self._commits.homes.settle(output, store, root)
        self._table_commits.finish_torn(store, root)

    def finish_torn(self, location: str) -> None:
        """Finish what a driver that died had committed of the table."""
        self._table_commits.finish_torn(*self._open_table(location))

    def close(self) -> None:
        """Remove what was replaced."""
        self._table_commits.close()

    def read(self, committed: Committed, session: SparkSession, options: Mapping[str, str]) -> DataFrame:
        """The rows of this commit alone, with its schema. Raises ``OutputGone`` if they are not all there."""
        self.finish_torn(committed.path)
        schema = read_schema(committed)
        if not committed.tag:
            return session.createDataFrame([], schema)
        paths = self._list_paths(committed)
        # The schema is the record's: of other formats than Parquet files do not say it.
        reader = session.read.format(committed.format).options(**options).schema(schema)
        found = reader.option("basePath", committed.path).option(NO_GLOB, "false").load(list(paths))
        return found.select(*(quote_name(name) for name in schema.names))

    def holds(self, committed: Committed) -> bool:
        """Whether all that the commit wrote is in the table, and nothing that it replaced."""
        self.finish_torn(committed.path)
        try:
            read_schema(committed)
            return (not committed.tag or bool(self._list_paths(committed))) and not self._holds_replaced(committed)
        except OutputGone:
            return False

    def _holds_replaced(self, committed: Committed) -> bool:
        """Whether files of its writer's earlier commits are where it wrote none: only a swap that lost its journal
        leaves these.
        """
        store, root = self._open_table(committed.path)
        key, tag = _hash_key(committed.interval, committed.writer), committed.tag
        folders = self._commits.folders_before(committed).difference(committed.partitions or ("",))
        names = (entry.name for folder in sorted(folders) for entry in store.list(join_path(root, folder)))
        return any(key in name and not (tag and tag in name) for name in names)

    def holds_alone(self, committed: Committed) -> bool:
        """Whether the table has no row of others."""
        store, root = self._open_table(committed.path)
        return all(committed.tag and committed.tag in entry.name for _, entry in walk_files(store, root))

    def _list_paths(self, committed: Committed) -> tuple[str, ...]:
        """Folders that hold this commit only, else its files in them."""
        store, root = self._open_table(committed.path)
        missing = find_missing_files(store, root, committed.files)
        if missing:
            raise OutputGone(committed, f"{len(missing)} of {len(committed.files)} files are missing, as {missing[0]}")
        paths: list[str] = []
        total = 0
        for folder in committed.partitions or ("",):
            files, size, alone = find_tagged(store, join_path(root, folder), committed.tag)
            # A folder costs Spark one listing, its files one look each: named only where others have files there.
            paths += [join_path(root, folder)] if files and alone else files
            total += size
        # A file that was cut short still has its name.
        if not paths or total != committed.bytes:
            raise OutputGone(committed, f"{total} of {committed.bytes} bytes are there")
        return tuple(paths)

    def _open_table(self, location: str) -> tuple[Store, str]:
        """The store of the table, and its folder without links in the path: it is written through them."""
        store = open_store(self._spark, location)
        return store, store.resolve(location.rstrip("/"))


def _write_draft(df: DataFrame, table: Table, store: Store, folder: str) -> Draft:
    counted = count_all(df)
    writer = counted.df.write.format(table.format).options(**table.options)
    writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    (writer.partitionBy(*table.partition_by) if table.partition_by else writer).save(join_path(folder, "new"))
    files = list_draft_files(store, folder)
    names = [path.rpartition("/")[2] for path, _ in files]
    tags = {match[1] for name in names if (match := _TAG.search(name))}
    rows = counted.read()
    # One write has one id. Rows without files: executors wrote to disks of their own, which this machine cannot see.
    if len(tags) > 1 or bool(tags) != bool(names) or (rows and not names):
        raise OSError(f"{folder}: {rows} rows written, but not in files with the id of one write: {names[:3]}")
    empty = "" if files else _write_empty(df, table, store, folder)
    return Draft(folder, rows, df.schema, files, "".join(tags), empty)


def _make_key(table: Table, origin: Origin) -> str:
    """See the module. Of a table that each write replaces as a whole nothing is ever looked for."""
    is_whole = table.mode == "overwrite" and not table.partition_by
    # The folder is exchanged: whatever was in it goes, whoever wrote it.
    return "" if is_whole else _hash_key(origin.interval, origin.writer)


def _hash_key(interval: str, writer: str) -> str:
    return f"d{digest_parts(interval, writer)}"


def _add_key(store: Store, draft: Draft, key: str) -> Draft:
    """The draft with ``key`` in the names of its files, checksums included."""
    if not key:
        return draft
    new, named = join_path(draft.folder, "new"), f"{draft.tag}-{key}"
    for folder in list_folders(draft.files):
        for entry in store.list(join_path(new, folder)):
            # Checksums, too: Hadoop finds a file's by its name.
            if draft.tag in entry.name:
                store.rename(
                    join_path(new, folder, entry.name), join_path(new, folder, entry.name.replace(draft.tag, named, 1))
                )
    return replace(draft, files=tuple((path.replace(draft.tag, named, 1), size) for path, size in draft.files))


def _write_empty(df: DataFrame, table: Table, store: Store, folder: str) -> str:
    """A file without rows but with all columns: a partitioned table without partitions has no schema else."""
    # One partition, else there would be a file for each.
    nothing = df.sparkSession.createDataFrame([], df.schema).coalesce(1)
    nothing.write.format(table.format).options(**table.options).save(join_path(folder, "empty"))
    name = next(entry.name for _, entry in walk_files(store, join_path(folder, "empty")))
    store.rename(join_path(folder, "empty", name), join_path(folder, EMPTY + name))
    return EMPTY + name


def _make_record(origin: Origin, generation: int, table: Table, root: str, draft: Draft) -> Committed:
    return origin.make_record(
        generation,
        path=root,
        table=table.uri,
        rows=draft.rows,
        bytes=sum(size for _, size in draft.files),
        schema=draft.schema.json(),
        partitions=list_folders(draft.files) if table.partition_by else (),
        format=table.format,
        tag=draft.tag,
        mode=table.mode,
        files=draft.files,
    )


def _make_swap(committed: Committed, table: Table, draft: Draft, key: str, catalog: str) -> Swap:
    return Swap(
        record="",
        tag=draft.tag,
        table=committed.path,
        draft=draft.folder,
        mode=table.mode,
        folders=list_folders(draft.files),
        empty=draft.empty,
        catalog=catalog,
        key=key,
    )
