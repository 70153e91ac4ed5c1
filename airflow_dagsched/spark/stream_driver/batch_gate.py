"""What stands between Spark and the sink of a query: where the driver ends, no further batch gets in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.spark.session.capture_output import end_lines
from airflow_dagsched.spark.session.current import work_for


class GateClosed(Exception):
    """The query ends: Spark runs the batch again when it is started the next time."""


class BatchGate:
    """Takes the batches of one query, from one thread of Spark's after another.

    :param take: the sink.
    """

    def __init__(self, step: str, session: SparkSession, take: Callable[[DataFrame, int], Any]) -> None:
        self._step = step
        self._session = session
        self._take = take
        self._guard = threading.Lock()
        self._closed = False
        self.busy = False
        """Whether a batch is in the sink."""
        self.error: BaseException | None = None
        """What ended the query: Spark would give its text alone."""

    def __call__(self, df: DataFrame, batch: int) -> None:
        """What ``foreachBatch`` calls."""
        with self._guard:
            if self._closed:
                raise GateClosed(f"batch {batch} of {self._step!r} is left for the next driver")
            self.busy = True
        try:
            with work_for(self._step, self._session):
                self._take(df, batch)
                end_lines()
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.busy = False

    def close(self) -> None:
        """Let no further batch in; the one that is in goes on."""
        with self._guard:
            self._closed = True
