"""What frames' plans were found to take of marked datasets: it is read once, for a frame's plan does not change.

Readers whose turns come at once look at each other's plans: who comes second waits for what the first finds.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from threading import Lock
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from airflow_dagsched.spark.session.plan_columns import BlankLeaf, Use, find_use
from airflow_dagsched.spark.steps.step_results import Handed

log = logging.getLogger(__name__)


class ReadPlans:
    """Of one application."""

    def __init__(self) -> None:
        self._looks: WeakKeyDictionary[DataFrame, dict[str, _Look]] = WeakKeyDictionary()
        self._leaves: WeakKeyDictionary[DataFrame, BlankLeaf] = WeakKeyDictionary()
        self._guard = Lock()

    def find_use(self, df: DataFrame, handed: Handed) -> Use | None:
        """What ``df`` takes of the dataset; None: all."""
        with self._guard:
            look = self._looks.setdefault(df, {}).setdefault(handed.mark, _Look())
        with look.guard:
            if not look.is_over:
                look.use, look.is_over = self._read_plan(df, handed), True
            return look.use

    def _read_plan(self, df: DataFrame, handed: Handed) -> Use | None:
        try:
            return find_use(df, handed.content, handed.mark, self._find_leaf)
        except Exception as error:  # noqa: BLE001 - a plan that can't be read costs time, never an answer
            log.debug("what is used of %s is not known: %s", handed.output, error)
            return None

    def _find_leaf(self, content: DataFrame) -> BlankLeaf:
        with self._guard:
            leaf = self._leaves.get(content)
            if leaf is None:
                leaf = self._leaves[content] = BlankLeaf(content)
            return leaf


@dataclass
class _Look:
    """One look at what a plan takes of one dataset."""

    use: Use | None = None
    is_over: bool = False
    guard: Lock = field(default_factory=Lock)
