"""What frames' plans were found to use of marked datasets: it is read once, for a frame's plan does not change."""

from __future__ import annotations

import logging
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from airflow_dagsched.spark.session.plan_columns import find_used_columns
from airflow_dagsched.spark.steps.step_results import Handed

log = logging.getLogger(__name__)

Columns = frozenset[int]
"""Positions in a dataset."""


class ReadPlans:
    """Of one application."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[DataFrame, dict[str, Columns | None]] = WeakKeyDictionary()

    def find_columns(self, df: DataFrame, handed: Handed) -> Columns | None:
        """The columns of the dataset that ``df`` uses; None: all."""
        found = self._found.setdefault(df, {})
        if handed.mark not in found:
            found[handed.mark] = _read_plan(df, handed)
        return found[handed.mark]


def _read_plan(df: DataFrame, handed: Handed) -> Columns | None:
    try:
        return find_used_columns(df, handed.content, handed.mark)
    except Exception as error:  # noqa: BLE001 - a plan that can't be read costs time, never an answer
        log.debug("what is used of %s is not known: %s", handed.output, error)
        return None
