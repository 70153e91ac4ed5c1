"""What a warm application looks at in Java, to know whether a run has left something."""

from __future__ import annotations

import threading

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from airflow_dagsched.spark.warm_driver.java_state import JavaState
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
