"""Datasets: stored outputs that only steps read. Each commit is a Parquet folder of its own, never changed.

::

    <work_dir>/datasets/<output>/<interval>/0000000003-8c1f…/part-00000-….parquet
                                            ^ generation of the commit record that points to it
"""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import NullType, StringType, StructField, StructType

from airflow_dagsched.launch.keys import safe, short
from airflow_dagsched.spark.commits import CommitLog, Committed, Origin, OutputGone
from airflow_dagsched.spark.leases import Keeper, Lease
from airflow_dagsched.spark.observed import NO_GLOB, metrics_of, observe, quoted
from airflow_dagsched.spark.store import Store, join, walk


class Datasets:
    """Writes and reads the datasets of one work dir."""

    def __init__(self, store: Store, work_dir: str, commits: CommitLog, keeper: Keeper) -> None:
        self._store = store
        self._root = join(work_dir, "datasets")
        self._commits = commits
        self._keeper = keeper

    def write(self, df: DataFrame, origin: Origin) -> Committed:
        """Write and commit; blocks until both are done. Raises ``WriteRefused`` if another is the writer."""
        with self._keeper.holding(origin.output, origin.interval) as lease:
            generation = self._commits.last_generation(origin.output, origin.interval) + 1
            path = self._folder(origin, generation, lease)
            try:
                committed = self._written(df, origin, generation, path)
                self._keeper.check(lease)
                self._commits.commit(committed)
            except BaseException:
                self._store.delete(path)
                raise
        return committed

    def _folder(self, origin: Origin, generation: int, lease: Lease) -> str:
        writer = short(origin.run_id, lease.claim.nonce, str(lease.generation))
        return join(self._root, safe(origin.output), safe(origin.interval), f"{generation:010d}-{writer}")

    def _written(self, df: DataFrame, origin: Origin, generation: int, path: str) -> Committed:
        counted, observation = observe(_storable(df))
        counted.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(path)
        return origin.committed(
            generation,
            path=path,
            table=None,
            rows=metrics_of(observation).get("rows"),
            bytes=sum(entry.size for _, entry in walk(self._store, path)),
            schema=df.schema.json(),
            partitions=(),
            format="parquet",
        )

    def read(self, committed: Committed, session: SparkSession) -> DataFrame:
        """The rows as they were written. Raises ``OutputGone`` if retention, or a person, removed them."""
        if not self._store.list(committed.path):
            raise OutputGone(committed, "the folder is missing or empty")
        schema = StructType.fromJson(json.loads(committed.schema))
        reader = session.read.option(NO_GLOB, "false").schema(_stored(schema))
        return _restored(reader.parquet(committed.path), schema)

    def read_path(self, path: str, session: SparkSession) -> DataFrame:
        """The rows of the dataset at ``path``, whoever committed it; its record is found by the folders' names."""
        parts = path.rstrip("/").split("/")
        record = join("/".join(parts[:-4]), "commits", *parts[-3:-1], f"{parts[-1][:10]}.json")
        committed = self._commits.read(record)
        if committed is None or committed.path != path.rstrip("/"):
            return session.read.option(NO_GLOB, "false").parquet(path)
        return self.read(committed, session)


def _storable(df: DataFrame) -> DataFrame:
    """Parquet has no type for a column that only holds nulls: it is stored as a string."""
    if df.schema == _stored(df.schema):
        return df
    return df.select(*(col(quoted(field.name)).cast(field.dataType) for field in _stored(df.schema)))


def _stored(schema: StructType) -> StructType:
    return StructType(
        [
            StructField(field.name, StringType(), True, field.metadata) if _is_void(field) else field
            for field in schema.fields
        ]
    )


def _restored(df: DataFrame, schema: StructType) -> DataFrame:
    if not any(map(_is_void, schema.fields)):
        return df
    return df.select(
        *(
            lit(None).alias(field.name) if _is_void(field) else col(quoted(field.name)).alias(field.name)
            for field in schema.fields
        )
    )


def _is_void(field: StructField) -> bool:
    return isinstance(field.dataType, NullType)
