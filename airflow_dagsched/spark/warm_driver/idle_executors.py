"""Executors of an application that waits: they go back to the cluster, and are asked for again.

So a warm application holds nothing of a cluster between runs but its driver's own place, and each run has executors
that no other run has used::

    at first          after a run                        for the next one
    Spark's Master    a target of 0, all are killed      no target, as at first: the limit is spark.cores.max
    YARN              a target of 0, all are killed      spark.executor.instances
    dynamic           all are killed                     Spark asks for them as there is work
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from airflow_dagsched.spark.java_objects import make_scala_map

NO_LIMIT = 2**31 - 1
"""Spark's Master takes this for an application that names no number of executors, whatever its settings say."""
ON_YARN = 2
"""Executors that Spark asks YARN for where no setting says how many."""


class IdleExecutors:
    """Those of one application; on this machine the driver is all there is."""

    def __init__(self, spark: SparkSession) -> None:
        sc = spark.sparkContext
        self._sc: Any = sc._jsc.sc()
        self._spark = spark
        self._is_local = bool(self._sc.isLocal())
        has_own = bool(self._sc.executorAllocationManager().isDefined())
        self._target = None if has_own else read_target(str(sc.master), sc.getConf())
        """None: Spark has one, which changes with what there is to do."""
        self._are_back = False

    def give_back(self) -> None:
        """All of them."""
        if self._is_local:
            return
        if self._target is not None:
            self._ask_for(0)
        self._kill_all()
        self._are_back = True

    def give_late_back(self) -> None:
        """Those that came up only now: they were granted to a run that has ended."""
        if self._are_back and self._target is not None:
            self._kill_all()

    def ask_back(self) -> None:
        """As many as there were to be at first."""
        if self._are_back and self._target is not None:
            self._ask_for(self._target)
        self._are_back = False

    def _kill_all(self) -> None:
        there = self._sc.getExecutorIds()
        if there.nonEmpty():
            # Not SparkContext's method, which refuses where Spark allocates. Neither the target changes nor what counts
            # as failed; at once.
            self._sc.schedulerBackend().killExecutors(there, False, False, True)

    def _ask_for(self, count: int) -> None:
        self._sc.requestTotalExecutors(count, 0, make_scala_map(self._spark, {}))


def read_target(master: str, conf: Any) -> int:
    """Executors that the manager was asked for at first."""
    # Spark's Master looks at spark.executor.instances only where Spark allocates.
    return int(conf.get("spark.executor.instances", str(ON_YARN))) if master.startswith("yarn") else NO_LIMIT
