"""The rows steps have made, for the steps that read them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.spark.outputs.commits import Committed
from airflow_dagsched.spark.session.dataframe_cache import Kept
from airflow_dagsched.spark.session.plan_markers import make_mark
from airflow_dagsched.spark.session.sessions import rebind_frame
from airflow_dagsched.spark.steps.deferred import Deferred


@dataclass(frozen=True, slots=True)
class Handed:
    """One dataset, or the plain value a step returned instead."""

    output: Output
    content: Any
    kept: bool = False
    bare_scan: bool = False
    mark: str = ""
    committed: Committed | None = None
    """What the rows are read from."""


class Shelf:
    """Datasets by output. One that is not made yet carries a mark, see ``plan_markers``."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._guard = threading.Lock()
        self._handed: dict[Output, Handed] = {}
        self._marked: dict[str, Output] = {}
        self._beside: dict[Output, list[DataFrame]] = {}
        self.deferred: dict[Output, Deferred] = {}

    def put_lazy(self, output: Output, df: DataFrame, bare_scan: bool) -> None:
        """Hand ``df`` over unexecuted."""
        with self._guard:
            self._mark(output, df, bare_scan)

    def put_deferred(self, output: Output, df: DataFrame) -> None:
        """Hand ``df`` over unexecuted; whoever executes it first keeps it."""
        with self._guard:
            handed = self._mark(output, df, bare_scan=False)
            self.deferred[output] = Deferred(output, df, handed.content, handed.mark)

    def _mark(self, output: Output, df: DataFrame, bare_scan: bool) -> Handed:
        mark = make_mark(output.step, len(self._marked))
        self._marked[mark] = output
        # The alias is the mark, see ``plan_markers``; no row is touched for it.
        handed = self._handed[output] = Handed(output, df.alias(mark), bare_scan=bare_scan, mark=mark)
        return handed

    def get_handed(self, output: Output) -> Handed:
        """How the dataset was handed over. ``KeyError`` if it was not."""
        return self._handed[output]

    def put_kept(self, output: Output, df: DataFrame) -> None:
        """Keep ``df`` until ``release``; the next execution of it fills the cache."""
        # Before the guard: it asks Spark how much memory there is.
        self._kept.keep_frame(df)
        with self._guard:
            self._handed[output] = Handed(output, df, kept=True)

    def put_ready(self, output: Output, content: Any, committed: Committed | None = None) -> None:
        """Hand over what needs no keeping: a value, or rows that are kept elsewhere, as those of ``committed``."""
        with self._guard:
            self._handed[output] = Handed(output, content, committed=committed)

    def find_record(self, output: Output) -> Committed | None:
        """Of the dataset whose rows are handed over; None where these are no stored ones. ``KeyError`` as ever."""
        return self._handed[output].committed

    def take_rows(self, output: Output, session: SparkSession) -> Any:
        """What the reader gets, a DataFrame in its own session. ``KeyError`` if it was never put."""
        content = self._handed[output].content
        return rebind_frame(content, session) if isinstance(content, DataFrame) else content

    def collect_returned(self, step: str, session: SparkSession) -> Any:
        """What the step returned: one DataFrame, a dict of named ones, or a value."""
        names = sorted(output.name for output in self._handed if output.step == step)
        if names in ([], [""]):
            return self.take_rows(Output(step), session) if names else None
        return {name: self.take_rows(Output(step, name), session) for name in names}

    def __contains__(self, output: Output) -> bool:
        return output in self._handed

    def find_owner(self, mark: str) -> Output | None:
        """The dataset a mark stands for; None for a name that only looks like one."""
        return self._marked.get(mark)

    def keep_lazy(self, output: Output) -> bool:
        """Keep a lazy dataset that would be executed more than once; whether that changed anything."""
        with self._guard:
            handed = self._handed.get(output)
            if handed is None or handed.kept or handed.bare_scan or not isinstance(handed.content, DataFrame):
                return False
            self._kept.keep_frame(handed.content)
            self._handed[output] = replace(handed, kept=True)
            return True

    def keep_beside(self, output: Output, df: DataFrame) -> None:
        """Keep ``df``, which is read in the dataset's place, for as long as that would be."""
        self._kept.keep_frame(df)
        with self._guard:
            self._beside.setdefault(output, []).append(df)

    def release_step(self, step: str) -> None:
        """No one reads the step's datasets any more."""
        with self._guard:
            # Out of the shelf under the guard, out of Spark's memory after it: that takes a call of the JVM each.
            gone = [self._handed.pop(output) for output in tuple(self._handed) if output.step == step]
            frames = [handed.content for handed in gone if handed.kept]
            frames += [df for handed in gone for df in self._beside.pop(handed.output, ())]
        for df in frames:
            self._kept.release_frame(df)
