"""Which columns of a dataset its readers use, each by its own optimised plan.

A reader whose rows are handed on lazily uses what those that read them use; one whose rows are kept for several, what
it takes for the columns that these use. A reader whose plan is not there, or can't be read, uses all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.look_ahead import PATIENCE_S, StepCall, wait_for_plans
from airflow_dagsched.spark.driver.read_plans import Columns
from airflow_dagsched.spark.session.plan_columns import select_columns
from airflow_dagsched.spark.steps.planned import Planned


def find_readers_columns(app: Application, output: Output) -> Columns | None:
    """The columns that the readers of ``output`` use, all of them together; None: all."""
    return _Look(app, output, time.monotonic() + PATIENCE_S).gather(output)


def find_columns_of(app: Application, output: Output, each: Planned) -> Columns | None:
    """The columns of ``output`` that the plan of ``each`` uses; None: all."""
    return app.read_plans.find_columns(each.df, app.shelf.get_handed(output))


def unite_columns(found: Iterable[Columns | None]) -> Columns | None:
    """All of them; None: all there are."""
    each = [*found]
    known = [columns for columns in each if columns is not None]
    return frozenset[int]().union(*known) if len(known) == len(each) else None


class _Look:
    """One look at all readers of a dataset."""

    def __init__(self, app: Application, output: Output, until_s: float) -> None:
        self.app = app
        self.output = output
        self.until_s = until_s

    def gather(self, output: Output) -> Columns | None:
        """What the readers of ``output``, which is the dataset or made of it, use of the dataset."""
        readers = self.app.lineage.readers.get(output, ())
        # All are called before any is waited for.
        for reader in readers:
            self._call(reader)
        return unite_columns([self._ask_reader(reader) for reader in readers])

    def _ask_reader(self, reader: str) -> Columns | None:
        call = self._call(reader)
        planned = None if call is None else wait_for_plans(call, self.until_s)
        return None if planned is None else unite_columns([self._ask_plan(each) for each in planned])

    def _ask_plan(self, each: Planned) -> Columns | None:
        if each.mode == "lazy":
            through = self.gather(each.output)
            # Whatever they are, its readers can use no more than what it hands on.
            if through is not None:
                return through
        if each.mode == "defer":
            columns = _Look(self.app, each.output, self.until_s).gather(each.output)
            if columns is not None:
                each = replace(each, df=select_columns(each.df, columns))
        return find_columns_of(self.app, self.output, each)

    def _call(self, step: str) -> StepCall | None:
        """The call of the step's function, made now if nobody did and it can be; None if it can't."""
        app = self.app
        call = app.calls.find(step)
        if call is not None or not app.can_begin(step):
            return call
        return app.calls.call_early(step, partial(app.call_early, app))
