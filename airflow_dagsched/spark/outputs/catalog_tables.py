"""Tables of Spark's own catalog that are folders of files: created, then written like tables by path.

So their overwrite, append and exact reading are those of ``path_tables``; what a catalog adds is its list of
partitions, which follows each swap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.tables import FILE_FORMATS, Table
from airflow_dagsched.spark.files.store import join_path
from airflow_dagsched.spark.files.stores import open_store
from airflow_dagsched.spark.outputs.swap import Swap
from airflow_dagsched.spark.session.observed import quote_name

# Hive's, and so Spark's, name of the folder for null.
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class CatalogTables:
    """The catalog of one Spark application."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def resolve_table(self, df: DataFrame, table: Table, session: SparkSession) -> Table:
        """``table`` as a table by path if files in a folder are all there is to it, else by its name.

        Creates it if it is missing. Raises ``InvalidInput`` if it is there with other partition columns.
        """
        if not session.catalog.tableExists(table.location):
            _create_table(df, table, session)
        # Looked at once it is there: another may have made it first, in a format of its own.
        described = describe_table(session, table.location)
        provider = described.get("Provider", table.format).lower()
        if provider not in FILE_FORMATS or "Location" not in described:
            return replace(table, format=provider)
        columns = session.catalog.listColumns(table.location)
        partition_by = tuple(column.name for column in columns if column.isPartition)
        if table.partition_by and table.partition_by != partition_by:
            rule = f"is partitioned by {list(partition_by)}, not by {list(table.partition_by)} as declared"
            raise InvalidInput(f"table {table.location}", "partition_by", rule)
        return replace(table, location=described["Location"], format=provider, partition_by=partition_by)

    def find_folder(self, name: str) -> str | None:
        """Where the table's files are; None if it is missing or has no such folder."""
        return describe_table(self._spark, name).get("Location") if self._spark.catalog.tableExists(name) else None

    def follow_swap(self, swap: Swap) -> None:
        """Tell the catalog of the partitions that came and went with ``swap``."""
        if not swap.catalog:
            return
        store = open_store(self._spark, swap.table)
        # By what is there now, not by the journal: one swap may be followed twice.
        gone = [each for each in swap.old_folders if each and not store.exists(join_path(swap.table, each))]
        came = [each for each in swap.folders if each]
        for verb, condition, folders in (("DROP", "IF EXISTS", gone), ("ADD", "IF NOT EXISTS", came)):
            if folders:
                # Spark's grammar: DROP takes its partitions with commas, ADD without.
                separator = ", " if verb == "DROP" else " "
                specs = separator.join(f"PARTITION ({_format_partition(folder)})" for folder in folders)
                self._spark.sql(f"ALTER TABLE {swap.catalog} {verb} {condition} {specs}")
        # Else this session goes on reading the files that it listed before.
        self._spark.catalog.refreshTable(swap.catalog)


def describe_table(session: SparkSession, name: str) -> dict[str, str]:
    """What the catalog says about the table beside its columns: ``Provider``, ``Location``, ..."""
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    names = [row.col_name for row in rows]
    # Spark's own heading. Above it are columns, which may have any name.
    start = names.index("# Detailed Table Information") if "# Detailed Table Information" in names else len(rows)
    return {row.col_name: row.data_type for row in rows[start + 1 :]}


def order_columns(df: DataFrame, table: Table, session: SparkSession) -> DataFrame:
    """``df`` with its columns in the table's order, which matters to formats without names in the file.

    Raises ``InvalidInput`` if the columns or their types are not the table's.
    """
    columns = {column.name: column for column in session.catalog.listColumns(table.location)}
    wanted = {name: column.dataType for name, column in columns.items()}
    found = {field.name: field.dataType.simpleString() for field in df.schema}
    if wanted != found:
        different = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        parts = [f"{name}: {wanted.get(name)} in the table, {found.get(name)} in the step" for name in different]
        raise InvalidInput(f"table {table.location}", "columns", "; ".join(parts))
    data = [name for name, column in columns.items() if not column.isPartition]
    if [name for name in df.columns if not columns[name].isPartition] == data:
        return df
    return df.select(*(quote_name(name) for name in columns))


def _create_table(df: DataFrame, table: Table, session: SparkSession) -> None:
    """Empty, if nobody else was faster."""
    # As Spark does itself: files promise nothing about nulls.
    nullable = StructType([StructField(field.name, field.dataType, True, field.metadata) for field in df.schema])
    columns = session.createDataFrame([], nullable)._jdf.schema().toDDL()
    options = ", ".join(f"{_format_text(key)} {_format_text(value)}" for key, value in table.options.items())
    session.sql(
        f"CREATE TABLE IF NOT EXISTS {table.location} ({columns}) USING {table.format}"
        + (f" OPTIONS ({options})" if options else "")
        + (f" PARTITIONED BY ({', '.join(map(quote_name, table.partition_by))})" if table.partition_by else "")
    )


def parse_partition(folder: str) -> Iterable[tuple[str, str | None]]:
    """Columns and values in ``day=2013-01-01/carrier=AA``; None for null."""
    for part in folder.split("/"):
        name, _, value = part.partition("=")
        # Spark percent-encodes what a path cannot hold.
        yield unquote(name), None if value == NULL_PARTITION else unquote(value)


def _format_partition(folder: str) -> str:
    return ", ".join(
        f"{quote_name(name)} = {'null' if value is None else _format_text(value)}"
        for name, value in parse_partition(folder)
    )


def _format_text(value: str) -> str:
    """``value`` as a SQL string."""
    # Spark's string literals escape by backslash, unless spark.sql.parser.escapedStringLiterals is set.
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
