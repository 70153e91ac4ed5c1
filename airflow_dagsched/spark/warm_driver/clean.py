"""What a run may leave in an application, and how the next one comes to meet nothing of it.

    its process       gone: modules, threads, signal handlers, working folder, environment, and processes that steps
                      started in its group
    its sessions      gone: temporary views and functions, settings, current database, listeners of queries
    undone here       jobs, kept data, global views, Spark listeners, checkpoint folder, log levels, Spark's own
                      settings, Java's properties, time zone and locale, Python processes of executors, what Py4J holds,
                      sessions that threads hold, file systems, each with the keys of whoever opened it
    not undone        files and jars it added, Hadoop settings, Hadoop's user and its secrets, tables of a catalog in
                      memory, streaming queries, calls into Java that go on: they end the application
    not seen          threads that Java itself has: Spark and its libraries begin some whenever they like

What is seen and not known to be undone ends the application, which costs time; what would stay could change rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_dagsched.spark.java_objects import find_class
from airflow_dagsched.spark.session.sessions import SPARK_SESSION
from airflow_dagsched.spark.warm_driver.java_state import JavaState

MIB = 1024 * 1024
LEAST_BESIDE_MB, OFF_HEAP = 1024, "spark.memory.offHeap.size"
"""Java may have half as much as its heap beside it, and this at least, and what Spark is told to have there."""
SETTLES_WITHIN_S = 5.0
"""Seconds for jobs and threads of a run that has ended to be seen to end."""


class Cleaner:
    """Knows how the application was before its first run.

    :param spark: its root session, which no run uses.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._sc: Any = spark.sparkContext._jsc.sc()
        self._java = JavaState(spark)
        self._fixed = {name: look() for name, look in self._list_fixed()}
        self._held: Any = None

    def note_begin(self) -> None:
        """A run begins: what Py4J holds from now on is the run's."""
        self._held = None  # first: the old one is not to be in the new one
        self._held = find_class(self._spark, "java.util.HashSet")(self._java.list_bindings())

    def clean(self) -> str:
        """Remove what the last run left; why the application is not as it was all the same, empty: it is."""
        self._sc.cancelAllJobs()
        find_class(self._spark, SPARK_SESSION).setDefaultSession(self._spark._jsparkSession)
        self._drop_data()
        self._java.put_back()
        self._java.end_python_workers()
        trouble = self._find_trouble()
        self._java.forget_sessions()
        self._java.release_bindings(self._held)
        return trouble

    def _drop_data(self) -> None:
        shared = self._spark._jsparkSession.sharedState()
        shared.cacheManager().clearCache()
        shared.globalTempViewManager().clear()
        for kept in self._spark.sparkContext._jsc.getPersistentRDDs().values():
            kept.unpersist(False)
        self._java.forget_checkpoint_folder()
        self._java.close_file_systems()

    def _find_trouble(self) -> str:
        """What is otherwise than it was, and was not put back."""
        for what, look in self._list_fixed():
            if not _is_in_time(look, self._fixed[what]):
                return f"a step left {what}"
        return ""

    def _list_fixed(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """What a run must leave as it was, and how it is looked at."""
        java = self._java
        yield "a job that goes on", java.count_jobs
        yield "a call into Java that goes on", java.list_connections
        yield "files or jars in the application", java.describe_files
        yield "Hadoop settings", java.list_hadoop_changes
        yield "another user of Hadoop's", java.get_hadoop_user
        yield "secrets or tokens of Hadoop's user", java.list_hadoop_secrets
        yield "tables in the catalog", java.list_catalog
        yield "a streaming query", java.count_queries

    def measure_heap(self) -> tuple[int, float]:
        """MiB of Java's heap that are in use once it is collected, and their share of what there may be."""
        find_class(self._spark, "java.lang.System").gc()
        runtime = find_class(self._spark, "java.lang.Runtime").getRuntime()
        used = int(runtime.totalMemory()) - int(runtime.freeMemory())
        return used // MIB, used / int(runtime.maxMemory())

    def measure_beside(self) -> tuple[int, float]:
        """MiB that Java has in memory beyond all that its heap and Spark's own memory beside it may be, at least; and
        their share of what that may be.
        """
        pid = int(find_class(self._spark, "java.lang.ProcessHandle").current().pid())
        heap = int(find_class(self._spark, "java.lang.Runtime").getRuntime().maxMemory()) // MIB
        off_heap = int(self._sc.conf().getSizeAsMb(OFF_HEAP, "0"))
        beside = max(0, read_resident(pid) - heap - off_heap)
        return beside, beside / max(LEAST_BESIDE_MB, heap // 2)


def read_resident(pid: int) -> int:
    """MiB that a process has in memory for itself, but for files; 0 where nobody says."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon:")), 0)


def _is_in_time(look: Callable[[], Any], before: Any) -> bool:
    """Whether it comes to be as it was ``before``."""
    until = time.monotonic() + SETTLES_WITHIN_S
    while look() != before:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
