"""Tables in formats that commit by themselves (Delta, Iceberg, any other): Spark's writers, then our record.

Overwrite is a dynamic partition overwrite, so a repeat gives the same table: the record may come after it.
An append cannot be repeated. Its *intent* is written first, with the table's version:

    intent (version 7) -> append -> commit record

A try that finds an intent without a record appends only if the version is still the same (Delta, which
takes a transaction id, sees to that itself). Else nobody knows, and ``CannotAppend`` says so.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any
from urllib.parse import quote

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.functions import col, lit

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.keys import digest_parts
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.outputs.catalog_tables import NULL_PARTITION, parse_partition
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed, Origin, OutputGone
from airflow_dagsched.spark.outputs.leases import Keeper, commit_next
from airflow_dagsched.spark.outputs.schemas import read_schema
from airflow_dagsched.spark.session.observed import PARTITIONS, observe_rows, quote_name, read_metrics


@dataclass
class CannotAppend(DagschedError):
    """Appending now might put rows into the table twice."""

    table: str
    interval: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.table}, interval {self.interval}: nothing was appended: {self.reason}. Appended rows cannot be "
            "taken back in this format: delete them by hand and the commit records with them, or use mode 'overwrite'"
        )


class OtherTables:
    """Writes and reads tables that are not ours to swap."""

    def __init__(self, commits: CommitLog, keeper: Keeper) -> None:
        self._commits = commits
        self._keeper = keeper

    def write(self, df: DataFrame, table: Table, origin: Origin, session: SparkSession) -> Committed:
        """Write and commit. Raises ``WriteRefused`` if another is the writer, ``CannotAppend`` if in doubt."""
        with self._keeper.hold_lease(origin.output, origin.interval) as lease:
            earlier = self._commits.find_latest(origin.output, origin.interval, origin.writer)
            generation = lease.generation
            if table.mode == "append" and earlier is not None:
                committed = _repeat_record(earlier, origin, generation)
            elif table.mode == "append":
                committed = self._append_rows(df, table, origin, generation, session)
            else:
                committed = _overwrite_rows(df, table, origin, generation, session)
                _remove_partitions(table, session, self._list_remaining(earlier) - set(committed.partitions))
            return commit_next(self._commits, self._keeper, committed, lease)

    def _list_remaining(self, earlier: Committed | None) -> frozenset[str]:
        """Partitions of the earlier commit that still are this writer's."""
        return frozenset(earlier.partitions) - self._commits.find_written_over(earlier) if earlier else frozenset()

    def _append_rows(
        self, df: DataFrame, table: Table, origin: Origin, generation: int, session: SparkSession
    ) -> Committed:
        intent = self._commits.get_intent_path(origin.output, origin.interval, origin.writer)
        # Asked before the append: after it the answer would be our own.
        before = json.dumps(read_version(session, table, table.format))
        store = self._commits.homes.of(origin.output).store
        # Kept as the first try wrote it: a later one has to see from where that began.
        first = store.create_exclusive(intent, before)
        if not first and table.format != "delta" and store.read_text(intent) != before:
            raise CannotAppend(table.location, origin.interval, "an earlier try may have, and died before it said so")
        counted, observation = observe_rows(df, *table.partition_by)
        writer = counted.write.format(table.format).mode("append").options(**table.options)
        if table.format == "delta":
            # A writer appends once for an interval; generations count other writers' commits too.
            writer = writer.options(
                txnAppId=digest_parts(origin.output, origin.interval, origin.writer), txnVersion="1"
            )
        _save_rows(writer, table)
        return _make_record(df, table, origin, generation, read_metrics(observation))

    def read(self, committed: Committed, session: SparkSession, options: Mapping[str, str]) -> DataFrame:
        """The partitions written. Raises ``OutputGone`` where they cannot be told from other rows."""
        if committed.mode == "append":
            raise OutputGone(committed, "appended rows cannot be told from others in this format")
        reader, path = session.read.format(committed.format).options(**options), committed.path
        table = (reader.load(path) if "/" in path else reader.table(path)).select(*_list_columns(committed))
        if not committed.partitions:
            return table
        return table.where(reduce(Column.__or__, map(_match_partition, committed.partitions)))


def read_version(spark: SparkSession, table: Table, format_: str) -> str:
    """What changes when a table that commits by itself changes."""
    name = f"{format_}.`{table.location}`" if table.is_path else table.location
    query = {
        "delta": f"SELECT max(version) FROM (DESCRIBE HISTORY {name} LIMIT 1)",
        "iceberg": f"SELECT max_by(snapshot_id, committed_at) FROM {name}.snapshots",
    }.get(format_)
    try:
        # Without a version it equals nothing: it is not reused, and an append is not repeated.
        return f"{format_}:{spark.sql(query).collect()[0][0]}" if query else uuid.uuid4().hex
    except AnalysisException:
        return uuid.uuid4().hex


def _overwrite_rows(df: DataFrame, table: Table, origin: Origin, generation: int, session: SparkSession) -> Committed:
    counted, observation = observe_rows(df, *table.partition_by)
    if table.is_path or table.format == "delta":
        writer = counted.write.format(table.format).mode("overwrite").options(**table.options)
        if table.partition_by:
            # Static, Spark's default, would empty the partitions that are not written now.
            writer = writer.option("partitionOverwriteMode", "dynamic")
        _save_rows(writer, table)
    elif not session.catalog.tableExists(table.location):
        created = counted.writeTo(table.location).using(table.format).options(**table.options)
        columns = [col(quote_name(name)) for name in table.partition_by]
        (created.partitionedBy(*columns) if columns else created).create()
    elif table.partition_by:
        counted.writeTo(table.location).options(**table.options).overwritePartitions()
    else:
        # All rows of it, in one commit; the table itself stays.
        counted.writeTo(table.location).options(**table.options).overwrite(lit(True))
    return _make_record(df, table, origin, generation, read_metrics(observation))


def _save_rows(writer: DataFrameWriter, table: Table) -> None:
    if table.partition_by:
        writer = writer.partitionBy(*table.partition_by)
    writer.save(table.location) if table.is_path else writer.saveAsTable(table.location)


def _remove_partitions(table: Table, session: SparkSession, partitions: frozenset[str]) -> None:
    """Rows of partitions that the interval wrote before and does not write now."""
    name = f"{table.format}.`{table.location}`" if table.is_path else table.location
    for partition in sorted(partitions):
        conditions = (
            # ``= null`` would hold for no row. JSON's strings are Spark's: double quotes, backslashes.
            f"cast({quote_name(column)} as string) " + ("is null" if value is None else "= " + json.dumps(value))
            for column, value in parse_partition(partition)
        )
        session.sql(f"DELETE FROM {name} WHERE {' AND '.join(conditions)}")


def _repeat_record(earlier: Committed, origin: Origin, generation: int) -> Committed:
    """The record of an append that was made before."""
    if earlier.fingerprint != origin.fingerprint:
        raise CannotAppend(origin.output, origin.interval, f"run {earlier.run_id} appended other rows for it")
    return replace(
        earlier,
        generation=generation,
        run_id=origin.run_id,
        try_id=origin.try_id,
        task=origin.task,
        writer=origin.writer,
    )


def _make_record(df: DataFrame, table: Table, origin: Origin, generation: int, metrics: dict[str, Any]) -> Committed:
    return origin.make_record(
        generation,
        path=table.location,
        table=table.uri,
        rows=metrics.get("rows"),
        bytes=None,
        schema=df.schema.json(),
        partitions=tuple(sorted(_name_partition(values) for values in metrics.get(PARTITIONS, ()))),
        format=table.format,
        mode=table.mode,
    )


def _name_partition(values: dict[str, str | None]) -> str:
    """Spelled as Spark would name the folder."""
    return "/".join(
        f"{quote(name, safe=' ')}={NULL_PARTITION if value is None else quote(value, safe=' ')}"
        for name, value in values.items()
    )


def _list_columns(committed: Committed) -> list[str]:
    return [quote_name(name) for name in read_schema(committed).names]


def _match_partition(partition: str) -> Column:
    """The rows of the partition."""
    return reduce(
        Column.__and__,
        # Null-safe: the partition may be that of null.
        (col(quote_name(name)).cast("string").eqNullSafe(lit(value)) for name, value in parse_partition(partition)),
    )
