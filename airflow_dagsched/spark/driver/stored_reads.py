"""What steps read of stored datasets: told to those who plan the next run, and held against what is stored.

::

    dataset [a, b, c, d], of which a, b are stored      plan that uses a ........ goes on
      ──marked, one mark a reader──> plans              plan that uses c ........ ``MoreAsked``: all is made again
    of which rows with d > 1 are stored ............... plan that asks for them . goes on, over the stored rows

Nothing is executed before that is known, where it can be. A column that is not there fails whoever computes it all
the same (``outputs.narrowed``), as rows do of which some are stored (``outputs.held_rows``), and that says it as well.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import ColumnsRead
from airflow_dagsched.spark.driver.failures import read_text
from airflow_dagsched.spark.driver.read_plans import ReadPlans
from airflow_dagsched.spark.outputs.commits import NOT_STORED, Committed
from airflow_dagsched.spark.outputs.schemas import read_schema, read_whole
from airflow_dagsched.spark.session.plan_columns import Columns, Use
from airflow_dagsched.spark.session.plan_markers import count_marks, make_mark
from airflow_dagsched.spark.steps.step_results import Handed

FIRST = 10**9
"""Number of the first mark: the shelf's own count from 0, and never come so far."""
HIDDEN = "_metadata"
"""Spark's column of where a row comes from."""


class MoreAsked(BaseException):
    """More is asked for of stored datasets than there is of them, columns or rows: no error of a step, and no code of
    an author's is to handle it.
    """


@dataclass
class StoredRead:
    """One dataset, in the hands of one reader."""

    reader: str
    handed: Handed
    stored: Columns | None
    """Positions of the columns that are stored; None: all."""
    rows: DataFrame | None = None
    """Those that are stored, which the reader gets once his plan is known; None: he has them, they are all."""
    where: frozenset[str] = frozenset()
    """What they fulfil."""
    used: Use | None = field(default_factory=Use)
    """None: all."""

    def name_used(self) -> tuple[str, ...] | None:
        """The columns that are used; None: all."""
        names = self.handed.content.columns
        return None if self.used is None else tuple(names[at] for at in sorted(self.used.columns))

    def write_asked(self) -> frozenset[str]:
        """What is asked of each row that is used."""
        return _write(self.handed.content, self.used)

    def has(self, use: Use | None) -> bool:
        """Whether all that is used is stored."""
        if self.stored is None:
            return True
        if use is None or not use.columns <= self.stored:
            return False
        # Written only where it is asked: each condition is a word with Java.
        return not self.where or use.conditions is None or self.where <= _write(self.handed.content, use)


class StoredReads:
    """Those of one application."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._reads: dict[str, StoredRead] = {}
        self.asked: dict[Output, dict[str, tuple[str, ...] | None]] = {}
        """Datasets to be made again -> who has asked for more of them -> for which columns; None: it may be any."""

    def mark_rows(self, reader: str, output: Output, df: DataFrame, committed: Committed) -> DataFrame:
        """The rows of ``committed`` as ``reader`` gets them."""
        rows = df if committed.where else None
        shown = df if rows is None else _hold_back(rows)
        with self._guard:
            mark = make_mark(output.step, FIRST + len(self._reads))
            marked = shown.alias(mark)
            handed, stored = Handed(output, marked, mark=mark), _locate_stored(committed)
            self._reads[mark] = StoredRead(reader, handed, stored, rows, frozenset(committed.where))
        return marked

    def open_plan(self, df: DataFrame, plans: ReadPlans) -> DataFrame:
        """``df``, which is about to be executed, over the rows that are stored. Raises ``MoreAsked``."""
        reads = self._find_reads(df)
        for read in reads:
            self._note_use(read, plans.find_use(df, read.handed))
        return _give_back(df, reads)

    def look_through(self, df: DataFrame) -> DataFrame:
        """``df`` over the rows that are stored: not to be executed, for nobody has looked whether it may be."""
        return _give_back(df, self._find_held(df))

    def has_some(self, df: DataFrame) -> bool:
        """Whether ``df`` is made of a dataset of which some rows are stored."""
        return bool(self._find_held(df))

    def _find_held(self, df: DataFrame) -> list[StoredRead]:
        # Asked first: Spark has to print the plan for it.
        return [read for read in self._find_reads(df) if read.rows is not None] if self._holds_rows() else []

    def _holds_rows(self) -> bool:
        return any(read.rows is not None for read in [*self._reads.values()])

    def note_whole(self, df: DataFrame, plans: ReadPlans) -> None:
        """``df`` is about to be kept as it stands, for plans that nobody looks at. Raises ``MoreAsked``."""
        for read in self._find_reads(df):
            use = plans.find_use(df, read.handed)
            # Whatever it asks of the rows: they can't be put into it.
            self._note_use(read, None if use is None else replace(use, conditions={}))

    def note_action(self, reader: str, df: DataFrame | None) -> None:
        """The author of ``reader`` is about to execute ``df`` (None: it is not known what). Raises ``MoreAsked``."""
        mine = [read for read in self._reads.values() if read.reader == reader]
        # A plan that is not ours to look at twice: who acts needs all.
        for read in mine if df is None else self._find_reads(df):
            self._note_use(read, None)

    def note_all(self, reader: str, output: Output) -> None:
        """``reader`` is one of whom nothing is known. Raises ``MoreAsked``."""
        for read in [*self._reads.values()]:
            if (read.reader, read.handed.output) == (reader, output):
                self._note_use(read, None)

    def raise_if_asked(self, error: BaseException | None = None) -> None:
        """Raises ``MoreAsked`` if somebody has asked for more, as by computing what is not there (``error``)."""
        narrow = [read for read in [*self._reads.values()] if read.stored is not None]
        if narrow and error is not None and self._is_of_missing(read_text(error)):
            # It does not say which: all there are.
            for read in narrow:
                self.asked.setdefault(read.handed.output, {})[read.reader] = None
        if self.asked:
            raise MoreAsked

    def _is_of_missing(self, text: str) -> bool:
        # Rows that are held back have no hidden columns either.
        return NOT_STORED in text or (HIDDEN in text and self._holds_rows())

    def describe_reads(self, readers: frozenset[str]) -> ColumnsRead:
        """What these readers have read of stored datasets."""
        mine = {key: reads for key, reads in self._group_reads().items() if key[1] in readers}
        return _describe({key: (_unite_columns(reads), _share_asked(reads)) for key, reads in mine.items()})

    def describe_asked(self) -> ColumnsRead:
        """What those have read who have asked for more, as far as it is known."""
        reads, asked = self._group_reads(), [*self.asked.items()]
        found = {(output.key, reader): columns for output, by in asked for reader, columns in by.items()}
        return _describe({key: (columns, _share_asked(reads[key])) for key, columns in found.items()})

    def _group_reads(self) -> dict[tuple[str, str], list[StoredRead]]:
        """``step/output`` and reader -> how he has it."""
        found: dict[tuple[str, str], list[StoredRead]] = {}
        for read in [*self._reads.values()]:
            found.setdefault((read.handed.output.key, read.reader), []).append(read)
        return found

    def _find_reads(self, df: DataFrame) -> list[StoredRead]:
        if not self._reads:
            return []
        return [self._reads[mark] for mark in count_marks(df, df.sparkSession) if mark in self._reads]

    def _note_use(self, read: StoredRead, use: Use | None) -> None:
        with self._guard:
            read.used = None if use is None or read.used is None else read.used.unite(use)
        if not read.has(use):
            self.asked.setdefault(read.handed.output, {})[read.reader] = read.name_used()
            raise MoreAsked


def _unite_columns(reads: list[StoredRead]) -> tuple[str, ...] | None:
    names = [read.name_used() for read in reads]
    known = [each for each in names if each is not None]
    return tuple(dict.fromkeys(name for each in known for name in each)) if len(known) == len(names) else None


def _share_asked(reads: list[StoredRead]) -> tuple[str, ...]:
    asked = [read.write_asked() for read in reads]
    return tuple(sorted(asked[0].intersection(*asked[1:])))


def _describe(found: Mapping[tuple[str, str], tuple[tuple[str, ...] | None, tuple[str, ...]]]) -> ColumnsRead:
    """:param found: ``step/output`` and reader -> columns, what is asked of rows."""
    read: dict[str, dict[str, tuple[str, ...] | None]] = {}
    where: dict[str, dict[str, tuple[str, ...]]] = {}
    for (output, reader), (columns, asked) in found.items():
        read.setdefault(output, {})[reader] = columns
        if asked:
            where.setdefault(output, {})[reader] = asked
    return ColumnsRead(read, where)


def _write(df: DataFrame, use: Use | None) -> frozenset[str]:
    if use is None or not use.conditions:
        return frozenset()
    from airflow_dagsched.spark.session.written_conditions import write_conditions  # each start pays for an import

    return write_conditions(df, use.conditions)


def _hold_back(rows: DataFrame) -> DataFrame:
    from airflow_dagsched.spark.outputs.held_rows import hold_back

    return hold_back(rows)


def _give_back(df: DataFrame, reads: list[StoredRead]) -> DataFrame:
    held = {read.handed.mark: read.rows for read in reads if read.rows is not None}
    if not held:
        return df
    from airflow_dagsched.spark.outputs.held_rows import give_back

    return give_back(df, held)


def _locate_stored(committed: Committed) -> Columns | None:
    if not committed.whole:
        return None
    names = {*read_schema(committed).names}
    return frozenset(at for at, name in enumerate(read_whole(committed).names) if name in names)
