"""What steps read of stored datasets: told to those who plan the next run, and held against what is stored.

::

    dataset [a, b, c, d], of which a, b are stored      plan that uses a ........ goes on
      ──marked, one mark a reader──> plans              plan that uses c ........ ``MoreColumns``: all is made again

Nothing is executed before that is known, where it can be. A column that is not there fails whoever computes it all
the same (``outputs.narrowed``), and that says it as well.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from pyspark.sql import DataFrame

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.spark.driver.failures import read_text
from airflow_dagsched.spark.driver.read_plans import ReadPlans
from airflow_dagsched.spark.outputs.commits import NOT_STORED, Committed
from airflow_dagsched.spark.outputs.schemas import read_schema, read_whole
from airflow_dagsched.spark.session.plan_columns import Columns
from airflow_dagsched.spark.session.plan_markers import count_marks, make_mark
from airflow_dagsched.spark.steps.step_results import Handed

FIRST = 10**9
"""Number of the first mark: the shelf's own count from 0, and never come so far."""


class MoreColumns(BaseException):
    """More is asked for of stored datasets than there is of them: no error of a step, and no code of an author's is
    to handle it.
    """


@dataclass
class StoredRead:
    """One dataset, in the hands of one reader."""

    reader: str
    handed: Handed
    stored: Columns | None
    """Positions of the columns that are stored; None: all."""
    used: Columns | None = frozenset()
    """None: all."""

    def name_used(self) -> tuple[str, ...] | None:
        """The columns that are used; None: all."""
        names = self.handed.content.columns
        return None if self.used is None else tuple(names[at] for at in sorted(self.used))


class StoredReads:
    """Those of one application."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._reads: dict[str, StoredRead] = {}
        self.asked: dict[Output, dict[str, tuple[str, ...] | None]] = {}
        """Datasets to be made again -> who has asked for more of them -> for which columns; None: it may be any."""

    def mark_rows(self, reader: str, output: Output, df: DataFrame, committed: Committed) -> DataFrame:
        """The rows of ``committed`` as ``reader`` gets them."""
        with self._guard:
            mark = make_mark(output.step, FIRST + len(self._reads))
            marked = df.alias(mark)
            self._reads[mark] = StoredRead(reader, Handed(output, marked, mark=mark), _locate_stored(committed))
        return marked

    def note_plan(self, df: DataFrame, plans: ReadPlans) -> None:
        """``df`` is about to be executed, or kept when it is. Raises ``MoreColumns``."""
        for read in self._find_reads(df):
            use = plans.find_use(df, read.handed)
            self._note_use(read, None if use is None else use.columns)

    def note_action(self, reader: str, df: DataFrame | None) -> None:
        """The author of ``reader`` is about to execute ``df`` (None: it is not known what). Raises ``MoreColumns``."""
        mine = [read for read in self._reads.values() if read.reader == reader]
        # A plan that is not ours to look at twice: who acts needs all.
        for read in mine if df is None else self._find_reads(df):
            self._note_use(read, None)

    def note_all(self, reader: str, output: Output) -> None:
        """``reader`` is one of whom nothing is known. Raises ``MoreColumns``."""
        for read in [*self._reads.values()]:
            if (read.reader, read.handed.output) == (reader, output):
                self._note_use(read, None)

    def raise_if_asked(self, error: BaseException | None = None) -> None:
        """Raises ``MoreColumns`` if somebody has asked for more, as by computing what is not there (``error``)."""
        is_narrow = any(read.stored is not None for read in [*self._reads.values()])
        if is_narrow and error is not None and NOT_STORED in read_text(error):
            # It does not say which: all there are.
            for read in [*self._reads.values()]:
                if read.stored is not None:
                    self.asked.setdefault(read.handed.output, {})[read.reader] = None
        if self.asked:
            raise MoreColumns

    def describe_reads(self, readers: frozenset[str]) -> dict[str, dict[str, tuple[str, ...] | None]]:
        """``step/output`` -> which of these readers -> names of the columns it has read; None: all."""
        found: dict[str, dict[str, tuple[str, ...] | None]] = {}
        for read in self._reads.values():
            if read.reader in readers:
                mine = found.setdefault(read.handed.output.key, {})
                before, columns = mine.get(read.reader, ()), read.name_used()
                both = None if columns is None or before is None else (*before, *columns)
                mine[read.reader] = None if both is None else tuple(dict.fromkeys(both))
        return found

    def _find_reads(self, df: DataFrame) -> list[StoredRead]:
        if not self._reads:
            return []
        return [self._reads[mark] for mark in count_marks(df, df.sparkSession) if mark in self._reads]

    def _note_use(self, read: StoredRead, columns: Columns | None) -> None:
        with self._guard:
            read.used = None if columns is None or read.used is None else read.used | columns
        if read.stored is not None and (columns is None or not columns <= read.stored):
            self.asked.setdefault(read.handed.output, {})[read.reader] = read.name_used()
            raise MoreColumns


def _locate_stored(committed: Committed) -> Columns | None:
    if not committed.whole:
        return None
    names = {*read_schema(committed).names}
    return frozenset(at for at, name in enumerate(read_whole(committed).names) if name in names)
