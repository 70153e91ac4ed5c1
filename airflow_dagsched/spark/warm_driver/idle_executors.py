"""Executors of an application that waits: they go back to the cluster, and are asked for again.

So a warm application holds nothing of a cluster between runs but its driver's own place, and each run has executors
that no other run has used::

                      after a run                        for the next one, by its own settings
    Spark's Master    a target of 0, all are killed      as many as spark.cores.max is for; without it, no target
    YARN              a target of 0, all are killed      spark.executor.instances
    dynamic           all are killed                     Spark asks for them as there is work
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.executor_settings import CORES, INSTANCES, MOST_CORES
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
        self._conf = sc.getConf()
        self._is_dynamic = bool(self._sc.executorAllocationManager().isDefined())
        """Then the target is Spark's, and changes with what there is to do."""
        self._are_back = False

    def give_back(self) -> None:
        """All of them."""
        if self._is_local:
            return
        if not self._is_dynamic:
            self._ask_for(0)
        self._kill_all()
        self._are_back = True

    def give_late_back(self) -> None:
        """Those that came up only now: they were granted to a run that has ended."""
        if self._are_back and not self._is_dynamic:
            self._kill_all()

    def ask_back(self, sizes: Mapping[str, float]) -> None:
        """As many as a run asks for that has these settings."""
        if self._are_back and not self._is_dynamic:
            self._ask_for(choose_target(str(self._spark.sparkContext.master), self._conf, sizes))
        self._are_back = False

    def _kill_all(self) -> None:
        there = self._sc.getExecutorIds()
        if there.nonEmpty():
            # Not SparkContext's method, which refuses where Spark allocates. Neither the target changes nor what counts
            # as failed; at once.
            self._sc.schedulerBackend().killExecutors(there, False, False, True)

    def _ask_for(self, count: int) -> None:
        self._sc.requestTotalExecutors(count, 0, make_scala_map(self._spark, []))


def choose_target(master: str, conf: Any, sizes: Mapping[str, float]) -> int:
    """Executors that the manager would be asked for by a submit of these sizes, all else as in ``conf``."""
    if master.startswith("yarn"):
        # What no submit of this application names may be in the site's own settings.
        return int(sizes.get(INSTANCES) or conf.get(INSTANCES, ON_YARN))
    # Spark's Master looks at spark.executor.instances only where Spark allocates.
    cores, most = int(conf.get(CORES, "0")), int(sizes.get(MOST_CORES, 0))
    return most // cores if cores and most else NO_LIMIT
