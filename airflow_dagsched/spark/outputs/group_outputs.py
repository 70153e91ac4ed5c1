"""All that a group's steps leave behind: datasets, tables by path, tables of a catalog; written and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.manifest import Manifest, StepSpec
from airflow_dagsched.launch.protocol.tables import FILE_FORMATS
from airflow_dagsched.spark.files.store import Store
from airflow_dagsched.spark.files.stores import open_store
from airflow_dagsched.spark.outputs.catalog_tables import CatalogTables, order_columns
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed, Narrowing, Origin
from airflow_dagsched.spark.outputs.datasets import Datasets
from airflow_dagsched.spark.outputs.leases import Keeper
from airflow_dagsched.spark.outputs.other_tables import OtherTables
from airflow_dagsched.spark.outputs.path_tables import PathTables
from airflow_dagsched.spark.outputs.schemas import has_schema


class Outputs:
    """Writes commit before they return, from any number of threads for different outputs.

    Making one finds where the group's tables are coordinated, and finishes swaps that an earlier driver died in.
    """

    def __init__(self, spark: SparkSession, store: Store, log: CommitLog, manifest: Manifest) -> None:
        self._spark = spark
        self.store = store
        """Of the work dir."""
        self.log = log
        self._manifest = manifest
        self._task = f"{manifest.dag_id}/{manifest.dataflow}/{manifest.group}"
        self.keeper = Keeper(
            log, run_id=manifest.run_id, try_id=manifest.try_id, task=self._task, lease_s=manifest.lease_s
        )
        self._datasets = Datasets(store, manifest.work_dir, log, self.keeper)
        self._catalog = CatalogTables(spark)
        self._paths = PathTables(spark, log, self.keeper, follow=self._catalog.follow_swap)
        self._others = OtherTables(log, self.keeper)
        self._written = {spec.writes.key: spec.writes for spec in manifest.steps if spec.writes is not None}
        # Before anything is read: what an earlier driver committed counts, so its moves have to be done.
        self._settle_tables()

    @classmethod
    def open(cls, spark: SparkSession, manifest: Manifest) -> Outputs:
        """The outputs of the manifest's steps, in the store that its work dir is in."""
        store = open_store(spark, manifest.work_dir)
        return cls(spark, store, CommitLog(store, manifest.work_dir), manifest)

    def get_output_key(self, spec: StepSpec, name: str = "") -> str:
        """What leases and commits of the output are filed under."""
        if spec.writes is not None and not name:
            return spec.writes.key
        return f"{self.name_writer(spec)}/{name}"

    def name_writer(self, spec: StepSpec) -> str:
        """Who the step is among the writers of a table."""
        return f"{self._manifest.dag_id}/{self._manifest.dataflow}/{spec.id}"

    def write_table(
        self, df: DataFrame, spec: StepSpec, fingerprint: str, session: SparkSession, interval: str = ""
    ) -> Committed:
        """Write what ``spec.writes`` declares and commit it, under ``interval`` if that is not the run's.

        Raises ``WriteRefused`` if another is the writer.
        """
        assert spec.writes is not None, f"{spec.id} declares no table"
        table, origin = spec.writes, self._make_origin(spec.writes.key, spec, fingerprint, interval)
        if table.format not in FILE_FORMATS:
            return self._others.write(df, table, origin, session)
        if table.is_path:
            return self._paths.write(df, table, origin)
        # Files in a folder are swapped in, whoever lists them: then journal, tag and exact reading are the same.
        stored = self._catalog.resolve_table(df, table, session)
        if not stored.is_path:
            return self._others.write(df, stored, origin, session)
        return self._paths.write(order_columns(df, table, session), stored, origin, catalog=table.location)

    def write_dataset(
        self,
        df: DataFrame,
        spec: StepSpec,
        name: str,
        fingerprint: str,
        interval: str = "",
        narrowed: Narrowing | None = None,
    ) -> Committed:
        """Store the step's output ``name`` and commit it, under ``interval`` if that is not the run's.

        :param narrowed: of what ``df`` has some columns, or rows; None: it is all there is.
        Raises ``WriteRefused`` if another is the writer.
        """
        key = self.get_output_key(replace(spec, writes=None), name)
        return self._datasets.write(df, self._make_origin(key, spec, fingerprint, interval), narrowed)

    def read(self, committed: Committed, session: SparkSession) -> DataFrame:
        """Exactly the rows of that commit. Raises ``OutputGone`` if they are not all there any more."""
        if committed.table is None:
            return self._datasets.read(committed, session)
        if committed.format not in FILE_FORMATS:
            return self._others.read(committed, session, self._get_options(committed.output))
        return self._paths.read(committed, session, self._get_options(committed.output))

    def holds(self, committed: Committed) -> bool:
        """Whether the commit's rows are there: no other writer, interval or program wrote over or removed them."""
        if committed.table is None:
            return self._datasets.holds(committed)
        if committed.format in FILE_FORMATS:
            return self._paths.holds(committed)
        if not has_schema(committed):
            return False
        # These formats keep their own files: only the records can say what became of the rows.
        over = self.log.find_written_over(committed)
        mine = set(committed.partitions)
        return not (over if not mine or "" in over else over & mine) and self.exists(committed.path)

    def holds_alone(self, committed: Committed) -> bool:
        """Whether a table by path has no row of others."""
        return self._paths.holds_alone(committed)

    def read_path(self, path: str, session: SparkSession) -> DataFrame:
        """The dataset at ``path``. Raises ``OutputGone`` if it is not there."""
        return self._datasets.read_path(path, session)

    def find_record(self, path: str) -> Committed | None:
        """The record of the dataset at ``path``; None: there is none to be read."""
        return self._datasets.find_record(path)

    def holds_path(self, path: str) -> bool:
        """Whether the dataset at ``path`` is there, all of it."""
        return self._datasets.holds_path(path)

    def exists(self, path: str) -> bool:
        """Whether the folder of a dataset or table, or the table of that name, is there."""
        if "/" not in path:
            return self._spark.catalog.tableExists(path)
        return open_store(self._spark, path).exists(path)

    def close(self) -> None:
        """Give all leases back, and remove what writes have replaced."""
        # Leases first: others wait for them, and what is replaced stays for a while yet.
        self.keeper.close()
        self._paths.close()

    def _make_origin(self, output: str, spec: StepSpec, fingerprint: str, interval: str) -> Origin:
        run = self._manifest
        filed = interval or run.interval_key
        return Origin(output, filed, fingerprint, run.run_id, run.try_id, self.name_writer(spec), self._task)

    def _get_options(self, output: str) -> Mapping[str, str]:
        table = self._written.get(output)
        return table.options if table is not None else {}

    def _settle_tables(self) -> None:
        """Tables by path, and catalog tables that are folders, are coordinated beside their folder."""
        for table in self._written.values():
            folder = table.location if table.is_path else self._catalog.find_folder(table.location)
            if folder is not None and table.format in FILE_FORMATS:
                self._paths.settle(table.key, folder)
            # Not ours to swap, but all who write it have to meet at one place.
            elif folder is not None and table.is_path:
                store = open_store(self._spark, folder)
                self.log.homes.settle(table.key, store, store.resolve(folder.rstrip("/")))
