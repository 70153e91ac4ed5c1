"""What the readers of a dataset take of it, each by its own optimised plan.

A reader whose rows are handed on lazily takes what those that read them take; one whose rows are kept for several, what
it needs for the columns that these take. A reader whose plan is not there, or can't be read, takes all.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.look_ahead import PATIENCE_S, StepCall, wait_for_plans
from airflow_dagsched.spark.session.plan_columns import Use, select_columns, unite_uses
from airflow_dagsched.spark.steps.planned import Planned


def find_readers_use(app: Application, output: Output) -> Use | None:
    """What the readers of ``output`` take of it, all of them together; None: all."""
    return _Look(app, output, time.monotonic() + PATIENCE_S).gather(output)


def find_use_of(app: Application, output: Output, each: Planned) -> Use | None:
    """What the plan of ``each`` takes of ``output``; None: all."""
    return app.read_plans.find_use(each.df, app.shelf.get_handed(output))


class _Look:
    """One look at all readers of a dataset."""

    def __init__(self, app: Application, output: Output, until_s: float) -> None:
        self.app = app
        self.output = output
        self.until_s = until_s

    def gather(self, output: Output) -> Use | None:
        """What the readers of ``output``, which is the dataset or made of it, take of the dataset."""
        readers = self.app.lineage.readers.get(output, ())
        # All are called before any is waited for.
        for reader in readers:
            self._call(reader)
        return unite_uses([self._ask_reader(reader) for reader in readers])

    def _ask_reader(self, reader: str) -> Use | None:
        call = self._call(reader)
        planned = None if call is None else wait_for_plans(call, self.until_s)
        return None if planned is None else unite_uses([self._ask_plan(each) for each in planned])

    def _ask_plan(self, each: Planned) -> Use | None:
        if each.mode == "lazy":
            through = self.gather(each.output)
            # Whatever they are, its readers can take no more than what it hands on.
            if through is not None:
                return through
        if each.mode == "defer":
            taken = _Look(self.app, each.output, self.until_s).gather(each.output)
            if taken is not None:
                each = replace(each, df=select_columns(each.df, taken.columns))
        return find_use_of(self.app, self.output, each)

    def _call(self, step: str) -> StepCall | None:
        """The call of the step's function, made now if nobody did and it can be; None if it can't."""
        app = self.app
        call = app.calls.find(step)
        if call is not None or not app.can_begin(step):
            return call
        return app.calls.call_early(step, partial(app.call_early, app))
