"""What a warm application looks at in Java, to know whether a run has left something."""

from __future__ import annotations

import threading

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from airflow_dagsched.spark.session.private_fields import find_private_method, read_private
from airflow_dagsched.spark.warm_driver.java_state import END_IDLE, JavaState
from tests.streams.kit import wait_until

pytestmark = pytest.mark.spark


def test_a_connection_of_the_keepers_own_is_nothing_left(spark: SparkSession) -> None:
    """Threads that ask Java for something come and go in the process that keeps the application. What other processes
    leave is in ``tests/warm``.
    """
    state, held, asked = JavaState(spark), threading.Event(), threading.Event()

    def ask() -> None:
        spark._jvm.System.nanoTime()
        asked.set()
        held.wait()

    thread = InheritableThread(target=ask)
    thread.start()
    asked.wait()
    try:
        wait_until(lambda: not state.list_connections(), str)
    finally:
        held.set()
        thread.join()


def test_processes_of_python_functions_that_a_spark_keeps_otherwise(spark: SparkSession) -> None:
    """The end is a sentence: it is why the application ends."""
    factories = read_private(spark._jvm.org.apache.spark.SparkEnv.get(), "pythonWorkers")
    with pytest.raises(LookupError, match="has no method 'cleanupIdleWorkers'"):
        find_private_method(factories, END_IDLE)
