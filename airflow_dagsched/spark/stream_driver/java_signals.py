"""SIGTERM to Java is SIGTERM to this program.

``spark-submit`` is a process of Java's that has this program as its child, and whoever ends a driver knows, and
signals, that one alone, or both. Java would end Spark at once, in the middle of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession


class _Handler:
    """Java calls it in a thread of its own."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def handle(self, sent: Any) -> None:
        """The method of the interface."""
        self._end()

    class Java:
        """What py4j looks for."""

        implements = ("sun.misc.SignalHandler",)


def forward_java_signals(main: SparkSession, end: Callable[[], None]) -> None:
    """Call ``end`` whenever Java gets a SIGTERM, in place of what Java would do."""
    gateway: Any = main.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    gateway.jvm.sun.misc.Signal.handle(gateway.jvm.sun.misc.Signal("TERM"), _Handler(end))
