"""DataFrames kept for several readers, and released after the last.

Spark finds cached data by its plan, so two steps with equal plans share it: it goes when both have let go.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

from pyspark import SparkContext, StorageLevel
from pyspark.sql import DataFrame

from airflow_dagsched.spark.session.compression import persist_frame

TIGHT = 0.3
"""Share of the executors' storage memory that has to be free, or further data is kept on disk alone."""


class Kept:
    """What is persisted in this application, by plan."""

    def __init__(self, sc: SparkContext) -> None:
        self._sc = sc
        self._guard = threading.Lock()
        self._holders: Counter[int] = Counter()
        # Bytes that they may take, of those that are not compressed: some are filled long after they are persisted.
        self._promised: Counter[int] = Counter()

    def keep_frame(self, df: DataFrame) -> None:
        """Have ``df`` kept when it is first executed."""
        with self._guard:
            plan = df.semanticHash()
            self._holders[plan] += 1
            if self._holders[plan] == 1:
                # Looked at each time: the memory fills up while the application runs.
                free, total = measure_storage_memory(self._sc)
                room = min(free, total - self._promised.total()) - int(TIGHT * total)
                self._promised[plan] = persist_frame(df, choose_level(free, total), room)

    def release_frame(self, df: DataFrame) -> None:
        """Undo one :meth:`keep_frame`."""
        with self._guard:
            plan = df.semanticHash()
            self._holders[plan] -= 1
            if self._holders[plan] == 0:
                del self._promised[plan]
                # Does not wait: executors drop the blocks in their own time.
                df.unpersist()


def choose_level(free: int, total: int) -> StorageLevel:
    """Memory and disk, or disk alone once the executors' storage memory (bytes) is nearly used up."""
    return StorageLevel.DISK_ONLY if free < TIGHT * total else StorageLevel.MEMORY_AND_DISK_DESER


def measure_storage_memory(sc: SparkContext) -> tuple[int, int]:
    """Bytes of storage memory free, and in all, on the executors; the driver's where there is no other."""
    found = list(_list_block_managers(sc))
    # Not by way of SparkEnv: in 4.3 Py4J can't look at it without a class that Spark's own distribution lacks.
    driver = str(sc._jsc.sc().statusStore().executorSummary("driver").hostPort())
    executors = [sizes for name, *sizes in found if name != driver] or [sizes for _, *sizes in found]
    return sum(free for _, free in executors), sum(total for total, _ in executors)


def _list_block_managers(sc: SparkContext) -> Iterator[tuple[str, int, int]]:
    """Host and port, total and free bytes of each."""
    entries = sc._jsc.sc().getExecutorMemoryStatus().iterator()
    while entries.hasNext():
        entry = entries.next()
        yield str(entry._1()), int(entry._2()._1()), int(entry._2()._2())
