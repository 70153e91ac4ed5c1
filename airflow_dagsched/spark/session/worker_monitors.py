"""Threads of Java that wait for ever for nothing: one for each query that keeps state with a Python function.

As such a query starts, Spark asks the function in a process of its own what state it keeps. The process ends, but not
the thread that would end it if it were idle, which holds the session that the query ran in.
"""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from airflow_dagsched.spark.java_objects import find_class
from airflow_dagsched.spark.session.private_fields import read_private

log = logging.getLogger(__name__)

NAME = "Idle Worker Monitor for "
"""How their names begin."""


def end_needless_monitors(session: SparkSession) -> None:
    """End those of processes that are never idle; those of the pools that Python functions run in stay."""
    threads = find_class(session, "java.lang.Thread")
    try:
        for thread in list(threads.getAllStackTraces().keySet()):
            if str(thread.getName()).startswith(NAME) and not read_private(read_private(thread, "$outer"), "useDaemon"):
                # It says so in the output, as no thread of Java's ends on being asked without a word.
                thread.interrupt()
    except LookupError as error:
        log.warning("a thread of Spark's goes on with a session that has ended: %s", error)
