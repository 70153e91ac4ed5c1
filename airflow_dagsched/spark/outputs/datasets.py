"""Datasets: stored outputs that only steps read. Each commit is a Parquet folder of its own, never changed.

::

    <work_dir>/datasets/<output>/<interval>/0000000003-8c1f…/part-00000-….parquet
                                            ^ of the lease it was written under
                                     0000000004-71ab…-some       <- some of its rows: its record says which
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import NullType, StringType, StructField, StructType

from airflow_dagsched.launch.protocol.events import SOME_ROWS
from airflow_dagsched.launch.protocol.keys import digest_parts, escape_key
from airflow_dagsched.spark.files.store import Store, join_path, walk_files
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed, Files, Narrowing, Origin, OutputGone
from airflow_dagsched.spark.outputs.leases import Keeper, Lease, commit_next
from airflow_dagsched.spark.outputs.schemas import has_schema, read_schema, read_whole
from airflow_dagsched.spark.outputs.table_checks import find_missing_files
from airflow_dagsched.spark.session.observed import NO_GLOB, Counted, count_all, quote_name


class Datasets:
    """Writes and reads the datasets of one work dir."""

    def __init__(self, store: Store, work_dir: str, commits: CommitLog, keeper: Keeper) -> None:
        self._store = store
        self._root = join_path(work_dir, "datasets")
        self._commits = commits
        self._keeper = keeper

    def write(self, df: DataFrame, origin: Origin, narrowed: Narrowing | None = None) -> Committed:
        """Write and commit; blocks until both are done. Raises ``WriteRefused`` if another is the writer.

        :param narrowed: of what ``df`` has some columns, or rows; None: it is all there is.
        """
        with self._keeper.hold_lease(origin.output, origin.interval) as lease:
            path = self._choose_folder(origin, lease) + (SOME_ROWS if narrowed is not None and narrowed.where else "")
            try:
                committed = self._write_files(df, origin, lease.generation, path, narrowed)
                # First the data: a record that outlives a power cut without it would be believed.
                self._make_durable(committed)
                return commit_next(self._commits, self._keeper, committed, lease)
            # Without a record nobody would ever read the folder; sys.exit of a step comes by here, too.
            except BaseException:
                self._store.delete(path)
                raise

    def _make_durable(self, committed: Committed) -> None:
        """The data is to outlive a power cut before the record does."""
        folders = [committed.path]
        while folders[-1] != self._root:
            folders.append(folders[-1].rpartition("/")[0])
        self._store.sync((*(join_path(committed.path, name) for name, _ in committed.files), *folders))

    def _choose_folder(self, origin: Origin, lease: Lease) -> str:
        # A driver that lost its lease goes on writing, into a folder that is only its own.
        writer = digest_parts(origin.run_id, lease.claim.nonce, str(lease.generation))
        return join_path(
            self._root, escape_key(origin.output), escape_key(origin.interval), f"{lease.generation:010d}-{writer}"
        )

    def _write_files(
        self, df: DataFrame, origin: Origin, generation: int, path: str, narrowed: Narrowing | None
    ) -> Committed:
        counted = count_all(_make_storable(df))
        # No _SUCCESS: the record says more.
        # Read once or twice, by us: smaller files are worth more than what packing them takes.
        options = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false", "compression": "zstd"}
        counted.df.write.options(**options).parquet(path)
        files = list_files(self._store, path)
        return origin.make_record(
            generation,
            path=path,
            table=None,
            bytes=sum(size for _, size in files),
            schema=df.schema.json(),
            partitions=(),
            format="parquet",
            files=files,
            **_describe_rows(counted, narrowed),
        )

    def holds(self, committed: Committed) -> bool:
        """Whether all of it is there."""
        return not self._find_damage(committed)

    def _find_damage(self, committed: Committed) -> str:
        """What is wrong with the data; empty if nothing is."""
        if not self._store.list(committed.path):
            return "the folder is missing or empty"
        missing = find_missing_files(self._store, committed.path, committed.files)
        if not missing and not has_schema(committed):
            return "its record has no schema that can be read"
        return f"{len(missing)} of {len(committed.files)} files are missing, as {missing[0]}" if missing else ""

    def read(self, committed: Committed, session: SparkSession) -> DataFrame:
        """The rows as they were written. Raises ``OutputGone`` if retention, or a person, removed any."""
        damage = self._find_damage(committed)
        if damage:
            raise OutputGone(committed, damage)
        schema = read_schema(committed)
        # Given, not inferred: that takes a job, and loses the columns that Parquet has no type for.
        reader = session.read.option(NO_GLOB, "false").schema(_make_stored_schema(schema))
        # Records from before the field ``files`` name none; then it is the folder.
        paths = [join_path(committed.path, name) for name, _ in committed.files] or [committed.path]
        stored = _restore_columns(reader.parquet(*paths), schema)
        if not committed.whole:
            return stored
        from airflow_dagsched.spark.outputs.narrowed import restore_whole  # few datasets are, and each start pays

        return restore_whole(stored, read_whole(committed))

    def read_path(self, path: str, session: SparkSession) -> DataFrame:
        """The rows of the dataset at ``path``, whoever committed it. Raises ``OutputGone`` as ``read`` does."""
        committed = self.find_record(path)
        if committed is None:
            return session.read.option(NO_GLOB, "false").parquet(path)
        if committed.where:
            raise OutputGone(committed, "they are some of its rows, for those who know which")
        return self.read(committed, session)

    def holds_path(self, path: str) -> bool:
        """Whether the dataset at ``path`` is there, whole where its record says what that is."""
        committed = self.find_record(path)
        if committed is None:
            return not path.rstrip("/").endswith(SOME_ROWS) and bool(self._store.list(path))
        return self.holds(committed)

    def find_record(self, path: str) -> Committed | None:
        """The record of the dataset, which is found by the names of its folders."""
        parts = path.rstrip("/").split("/")
        # <work_dir>/datasets/<output>/<interval>/<folder>, see the module.
        return self._commits.find_at_path(join_path("/".join(parts[:-4]), "commits", *parts[-3:-1]), path.rstrip("/"))


def _describe_rows(counted: Counted, narrowed: Narrowing | None) -> dict[str, Any]:
    """Of a record: how many rows there are, and of what they are some."""
    if narrowed is None:
        return {"rows": counted.read()}
    named = {"whole": narrowed.whole, "way": narrowed.way, "where": narrowed.where}
    if narrowed.counted is None:
        return {"rows": counted.read(), **named}
    return {"rows": narrowed.counted.read(), "stored_rows": counted.read(), **named}


def list_files(store: Store, path: str) -> Files:
    """The visible files of a dataset with their bytes."""
    found = (
        (join_path(folder, entry.name) if folder else entry.name, entry.size)
        for folder, entry in walk_files(store, path)
    )
    return tuple(sorted(found))


def _make_storable(df: DataFrame) -> DataFrame:
    """Parquet has no type for a column that only holds nulls: it is stored as a string."""
    if df.schema == _make_stored_schema(df.schema):
        return df
    return df.select(*(col(quote_name(field.name)).cast(field.dataType) for field in _make_stored_schema(df.schema)))


def _make_stored_schema(schema: StructType) -> StructType:
    return StructType(
        [
            StructField(field.name, StringType(), True, field.metadata) if _is_void(field) else field
            for field in schema.fields
        ]
    )


def _restore_columns(df: DataFrame, schema: StructType) -> DataFrame:
    if not any(map(_is_void, schema.fields)):
        return df
    return df.select(
        *(
            lit(None).alias(field.name) if _is_void(field) else col(quote_name(field.name)).alias(field.name)
            for field in schema.fields
        )
    )


def _is_void(field: StructField) -> bool:
    return isinstance(field.dataType, NullType)
