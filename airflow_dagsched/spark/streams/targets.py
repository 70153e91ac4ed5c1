"""Where the rows of a query go in the end: a table of files, one that keeps its own log, or a function."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_dagsched.launch.protocol.tables import FILE_FORMATS, Table
from airflow_dagsched.spark.files.store import LocalStore, Store, join_path, walk_files
from airflow_dagsched.spark.files.stores import open_store
from airflow_dagsched.spark.outputs.locks import FencedStore
from airflow_dagsched.spark.outputs.table_checks import check_draft, check_way_in, make_durable
from airflow_dagsched.spark.session.observed import NO_GLOB
from airflow_dagsched.spark.streams.draft_writer import Draft, DraftWriter, Layout, RowWindows
from airflow_dagsched.spark.streams.drafts import NEW, DraftPlace, place_beside
from airflow_dagsched.spark.streams.mover import make_swap, move_files
from airflow_dagsched.switch.places import FlowPlaces
from airflow_dagsched.switch.records import Batch

WITH_TYPES = ("parquet", "orc")
"""Formats of files that know the types of their columns."""


class FileTarget:
    """A folder of files: they are moved in.

    :param table: by path.
    """

    def __init__(self, spark: SparkSession, table: Table, flow: FlowPlaces, windows: RowWindows) -> None:
        self.store, self._root = _open_table(spark, table)
        self.place = place_beside(self._root, flow)
        layout = Layout(table.format, table.options, table.partition_by)
        self.writer = DraftWriter(spark, self.store, layout, windows)

    def prepare(self, draft: Draft) -> None:
        """See ``Target``. Raises ``DraftChanged`` and ``NoWayIn``."""
        swap = make_swap(self._root, draft.folder, tuple(path for path, _ in draft.files))
        check_draft(self.store, swap, draft.files)
        check_way_in(self.store, swap)
        make_durable(self.store, draft.files, draft.folder, self.place.top)

    def deliver(self, store: FencedStore, draft: str, record: Batch, epoch: str) -> None:
        """See ``Target``."""
        move_files(store, self._root, draft, record.files)


class _ReadTarget:
    """One whose drafts are read again to be delivered."""

    def __init__(self, spark: SparkSession, store: Store, place: DraftPlace, writer: DraftWriter) -> None:
        self._spark, self.store, self.place, self.writer = spark, store, place, writer

    def prepare(self, draft: Draft) -> None:
        """See ``Target``."""
        make_durable(self.store, draft.files, draft.folder, self.place.top)

    def _read_draft(self, draft: str) -> DataFrame:
        return self._spark.read.option(NO_GLOB, "false").parquet(join_path(draft, NEW))


class DeltaTarget(_ReadTarget):
    """A Delta table: the draft is appended under a transaction id, which Delta takes once.

    :param table: by path.
    """

    def __init__(self, spark: SparkSession, table: Table, flow: FlowPlaces, windows: RowWindows) -> None:
        store, root = _open_table(spark, table)
        writer = DraftWriter(spark, store, Layout(), windows)
        super().__init__(spark, store, place_beside(root, flow), writer)
        self._table, self._flow = table, flow.lease_key

    def deliver(self, store: FencedStore, draft: str, record: Batch, epoch: str) -> None:
        """See ``Target``."""
        table = self._table
        store.fence.check()
        writer = self._read_draft(draft).write.format(table.format).mode("append").options(**table.options)
        writer = writer.options(**name_transaction(self._flow, epoch, record))
        (writer.partitionBy(*table.partition_by) if table.partition_by else writer).save(table.location)


class FunctionTarget(_ReadTarget):
    """A function of the author, which gets rows and a key: at least once, and for one key always the same rows.

    :param name: ``<dag>/<flow>/<step>``: a key is this, the epoch's folder and number, and the batch.
    """

    def __init__(
        self,
        spark: SparkSession,
        function: Callable[[DataFrame, str], object],
        name: str,
        place: DraftPlace,
        windows: RowWindows,
    ) -> None:
        store = LocalStore()
        writer = DraftWriter(spark, store, Layout(), windows)
        super().__init__(spark, store, place, writer)
        self._function, self._name = function, name

    def deliver(self, store: FencedStore, draft: str, record: Batch, epoch: str) -> None:
        """See ``Target``."""
        store.fence.check()
        self._function(self._read_draft(draft), f"{self._name}/{epoch}/{record.epoch}/{record.batch}")


def open_table_target(
    spark: SparkSession, table: Table, flow: FlowPlaces, windows: RowWindows
) -> FileTarget | DeltaTarget:
    """The target of a query that writes a table by path."""
    kind = FileTarget if table.format in FILE_FORMATS else DeltaTarget
    return kind(spark, table, flow, windows)


def find_mismatch(spark: SparkSession, table: Table, schema: StructType) -> str:
    """Which column of the rows is of another type in the table, as far as one of its files tells; empty: none is.

    Parquet takes files of any types into one folder, and it is who reads them that fails.
    """
    if table.format not in WITH_TYPES:
        return ""
    store, root = _open_table(spark, table)
    file = next((join_path(root, folder, entry.name) for folder, entry in walk_files(store, root)), None)
    if file is None:
        return ""
    found = spark.read.format(table.format).option(NO_GLOB, "false").load(file).schema
    types = {field.name.lower(): field.dataType.simpleString() for field in found}
    unlike = (
        f"column {field.name!r} is {field.dataType.simpleString()}, and {types[field.name.lower()]} in the files of "
        f"{table.location}: cast it, or write another table"
        for field in schema
        if types.get(field.name.lower(), field.dataType.simpleString()) != field.dataType.simpleString()
    )
    return next(unlike, "")


def name_transaction(flow: str, epoch: str, record: Batch) -> dict[str, str]:
    """Options by which Delta knows an append that it has: of an epoch, the numbers of its records only grow."""
    return {"txnAppId": f"{flow}/{epoch}/{record.query}", "txnVersion": str(record.n)}


def _open_table(spark: SparkSession, table: Table) -> tuple[Store, str]:
    """The store of the table, and its folder without links in the path."""
    store = open_store(spark, table.location)
    return store, store.resolve(table.location.rstrip("/"))
