"""A batch's rows, written aside in one pass that also tells their windows; and made fewer, where some don't count."""

from __future__ import annotations

import logging
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql.functions import col, count, expr, lit, unix_micros
from pyspark.sql.functions import max as greatest
from pyspark.sql.functions import min as least
from pyspark.sql.types import StructType

from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.outputs.commits import Files
from airflow_dagsched.spark.outputs.swap import list_draft_files
from airflow_dagsched.spark.session.observed import NO_GLOB, measure_rows, quote_name, read_metrics
from airflow_dagsched.spark.streams.condensing import condense_windows
from airflow_dagsched.spark.streams.drafts import NEW
from airflow_dagsched.spark.streams.output_window import OutputWindow
from airflow_dagsched.spark.streams.write_into_new import write_into_new
from airflow_dagsched.switch.comparing.summary import Summaries
from airflow_dagsched.switch.judgement import Judgement

log = logging.getLogger(__name__)

_MICROS = 1_000_000
"""In a second. Rows are compared by whole numbers: Spark tells microseconds apart."""
_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True, slots=True)
class Layout:
    """How drafts of a target are written."""

    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """What a batch has come to, aside."""

    folder: str
    schema: StructType
    rows: int = 0
    first: float | None = None
    """Oldest window in seconds since 1970; None: there are no rows."""
    last: float | None = None
    files: Files = ()


@dataclass(frozen=True, slots=True)
class RowWindows:
    """Which of the flow's windows a row of a query is of."""

    column: OutputWindow
    length_s: float
    """Of the flow's windows, in seconds."""


class DraftWriter:
    """Writes drafts of one query."""

    def __init__(self, spark: SparkSession, store: Store, layout: Layout, windows: RowWindows) -> None:
        self._spark = spark
        self._store = store
        self._layout = layout
        self._windows = windows
        self._micros = unix_micros(expr(windows.column.path))
        """By which a row's window is told, since 1970; null: it is of none."""

    def write(self, df: DataFrame, folder: str) -> Draft:
        """Write the rows of a batch that have a window into a new draft."""
        draft = Draft(folder, df.schema)
        metrics = self._save(df, folder, NEW) or self._measure(draft)
        if metrics["without"]:
            log.warning("%s: left out %s rows without a window", folder, metrics["without"])
        return self._describe(draft, metrics)

    def narrow(self, draft: Draft, judged: Judgement) -> Draft:
        """Keep only the rows of windows that count."""
        rows = self._read(draft)
        for how, moment in self._windows.column.bound(judged.after, judged.upto):
            rows = rows.where(_COMPARE[how](self._micros, lit(round(moment * _MICROS))))
        metrics = self._save(rows, draft.folder, "part")
        new = join_path(draft.folder, NEW)
        # Nobody else looks into a draft that has no record.
        self._store.delete(new)
        self._store.rename(join_path(draft.folder, "part"), new)
        return self._describe(draft, metrics or self._measure(draft))

    def execute(self, df: DataFrame) -> None:
        """Run the batch, and keep nothing of it: Spark fails one of which not all state was committed."""
        df.write.format("noop").mode("append").save()

    def condense(self, draft: Draft) -> Summaries:
        """What the draft has in each window."""
        return condense_windows(self._read(draft), self._windows.column, self._windows.length_s)

    def _save(self, df: DataFrame, folder: str, name: str) -> dict[str, Any]:
        """Write, and what was seen of the rows then; empty if Spark doesn't say."""
        seen = Observation()
        counted = df.observe(seen, *self._list_measures()).where(self._micros.isNotNull())
        layout = self._layout
        place = join_path(folder, name)
        writer = write_into_new(self._store, counted, place).format(layout.format).options(**layout.options)
        (writer.partitionBy(*layout.partition_by) if layout.partition_by else writer).save(place)
        return read_metrics(seen)

    def _measure(self, draft: Draft) -> dict[str, Any]:
        """What was not seen while it was written."""
        return measure_rows(self._read(draft), self._list_measures())

    def _list_measures(self) -> list[Column]:
        micros = self._micros
        return [
            count(micros).alias("rows"),
            (count(lit(1)) - count(micros)).alias("without"),
            least(micros).alias("first"),
            greatest(micros).alias("last"),
        ]

    def _describe(self, draft: Draft, metrics: Mapping[str, Any]) -> Draft:
        """The draft with what is in it now."""
        files, rows = list_draft_files(self._store, draft.folder), metrics["rows"]
        # Executors wrote to disks of their own, which this machine can't see.
        if rows and not files:
            raise OSError(f"{draft.folder}: {rows} rows were written, and there are no files of them")
        first, last = self._find_window(metrics["first"]), self._find_window(metrics["last"])
        return replace(draft, rows=rows, first=first, last=last, files=files)

    def _find_window(self, micros: int | None) -> float | None:
        column, length_s = self._windows.column, self._windows.length_s
        return None if micros is None else column.find_flow_window(micros / _MICROS, length_s)

    def _read(self, draft: Draft) -> DataFrame:
        new = join_path(draft.folder, NEW)
        reader = self._spark.read.format(self._layout.format).options(**self._layout.options).schema(draft.schema)
        found = reader.option("basePath", new).option(NO_GLOB, "false").load(new)
        # Columns that are folders come last.
        return found.select(*(col(quote_name(name)) for name in draft.schema.names))
