"""A dataset a step returned, before any job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.spark.session.observed import Counted
from airflow_dagsched.spark.steps.lineage import Mode

EXECUTING = frozenset({"write", "keep", "run"})
"""What becomes of a dataset whose plan is executed in its step's own turn."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One dataset, and what is to become of it."""

    output: Output
    df: DataFrame
    mode: Mode
    bare_scan: bool
    whole: DataFrame | None = None
    """All that the step returned, where ``df`` is some of its columns or rows."""
    counted: Counted | None = None
    """All its rows, where ``df`` is some of them."""
    where: tuple[str, ...] = ()
    """What these fulfil, as SQL."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """Marked dataset -> how often executing ``df`` would execute it, once what it reads is kept."""

    @property
    def is_executed(self) -> bool:
        """Whether its step's own turn executes it."""
        return self.mode in EXECUTING
