"""What frames' plans were found to take of marked datasets: it is read once, for a frame's plan does not change."""

from __future__ import annotations

import logging
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from airflow_dagsched.spark.session.plan_columns import Use, find_use
from airflow_dagsched.spark.steps.step_results import Handed

log = logging.getLogger(__name__)


class ReadPlans:
    """Of one application."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[DataFrame, dict[str, Use | None]] = WeakKeyDictionary()

    def find_use(self, df: DataFrame, handed: Handed) -> Use | None:
        """What ``df`` takes of the dataset; None: all."""
        found = self._found.setdefault(df, {})
        if handed.mark not in found:
            found[handed.mark] = _read_plan(df, handed)
        return found[handed.mark]


def _read_plan(df: DataFrame, handed: Handed) -> Use | None:
    try:
        return find_use(df, handed.content, handed.mark)
    except Exception as error:  # noqa: BLE001 - a plan that can't be read costs time, never an answer
        log.debug("what is used of %s is not known: %s", handed.output, error)
        return None
