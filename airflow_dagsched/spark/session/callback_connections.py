"""Connections by which threads of Java call functions of Python."""

from __future__ import annotations

from pyspark.sql import SparkSession


def close_idle_connections(session: SparkSession) -> None:
    """Close those that no thread of Java has used since the last time; one that needs its own again opens another.

    Each thread has its own, and behind it is a thread of Python: py4j keeps both when the thread of Java has ended, for
    it leaves out its cleaner where threads are paired.
    """
    server = session.sparkContext._gateway.java_gateway_server  # type: ignore[union-attr]
    server.getCallbackClient().periodicCleanup()
