"""A dataset with several readers whose rows are kept by the first job that reads them.

::

    deferred ──> kept, with the columns that its readers use ──> kept whole: one of them asked for more
             └─> kept whole: one of them can't be read                    (the columns stay until the last reader)
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import Failure
from airflow_dagsched.spark.session.plan_columns import KeptColumns


@dataclass
class RowsFailed(DagschedError):
    """The job that was to keep a dataset failed, in the turn of whoever read it first."""

    step: str
    """Whose code it was."""
    failure: Failure

    def __str__(self) -> str:
        return f"{self.step!r}, whose rows are read, failed: {self.failure.message}"


@dataclass
class Deferred:
    """One such dataset."""

    output: Output
    rows: DataFrame
    """As its step returned it."""
    marked: DataFrame
    """As its readers get it."""
    mark: str
    guard: threading.RLock = field(default_factory=threading.RLock)
    """Held by who keeps it, until it is kept."""
    acted_on: bool = False
    """Whether a reader acts on it inside its function, on a plan that is not ours to change."""
    kept: KeptColumns | None = None
    in_any_plan: bool = False
    """Whether it is kept as it stands, so that Spark finds it in any plan."""
    failed: RowsFailed | None = None
