"""Executors of an application that waits: they go back to the cluster, and are asked for again.

So a warm application holds nothing of a cluster between runs but its driver's own place, and each run has executors
that no other run has used.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


class IdleExecutors:
    """Those of one application; on this machine the driver is all there is."""

    def __init__(self, spark: SparkSession) -> None:
        sc = spark.sparkContext
        self._sc: Any = sc._jsc.sc()
        self._jvm: Any = spark._jvm
        self._count = None if str(sc.master).startswith("local[") or str(sc.master) == "local" else _count(sc.getConf())
        self._are_back = False

    def give_back(self) -> None:
        """All of them."""
        if self._count is not None:
            self._sc.requestTotalExecutors(0, 0, self._jvm.PythonUtils.toScalaMap(self._jvm.java.util.HashMap()))
            self._sc.killExecutors(self._sc.getExecutorIds())
            self._are_back = True

    def ask_back(self) -> None:
        """As many as there were to be at first."""
        if self._count is not None and self._are_back:
            self._sc.requestTotalExecutors(
                self._count, 0, self._jvm.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
            )
            self._are_back = False


def _count(conf: Any) -> int:
    """Executors that the application was submitted with."""
    named = conf.get("spark.executor.instances", None)
    if named is not None:
        return int(named)
    most, each = conf.get("spark.cores.max", None), conf.get("spark.executor.cores", None)
    return int(most) // int(each) if most is not None and each is not None else 2**16
