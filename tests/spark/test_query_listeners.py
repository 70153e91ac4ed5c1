"""What Java keeps of a session that a streaming query has run in."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.spark.session.private_fields import read_private
from airflow_dagsched.spark.session.query_listeners import stop_listening
from tests.streams.kit import wait_until

pytestmark = pytest.mark.spark


def count_buses(spark: SparkSession) -> int:
    """Of sessions that are told of streaming queries."""
    listeners = spark._jvm.java.util.ArrayList(spark.sparkContext._jsc.sc().listenerBus().listeners())
    return sum(each.getClass().getSimpleName() == "StreamingQueryListenerBus" for each in listeners)


def run_query(spark: SparkSession, checkpoint: Path):
    """A weak reference of Java's to the session of a query that has ended."""
    session = spark.newSession()
    before = count_buses(spark)
    rows = session.readStream.format("rate").load()
    query = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    wait_until(lambda: query.lastProgress is not None, str)
    assert count_buses(spark) > before
    stop_listening(session, ())
    assert count_buses(spark) > before, "it runs"
    query.stop()
    stop_listening(session, (query,))
    assert count_buses(spark) == before
    return spark._jvm.java.lang.ref.WeakReference(session._jsparkSession)


def test_nobody_listens_for_a_query_that_has_ended_and_its_session_is_collected(spark: SparkSession, tmp_path: Path):
    # What is made once in an application keeps the first, and this thread the last, until another is active in it.
    _, session, _ = (run_query(spark, tmp_path / name) for name in ("first", "second", "third"))

    def is_gone() -> bool:
        gc.collect()
        spark._jvm.System.gc()
        return session.get() is None

    wait_until(is_gone, str)


def test_a_field_that_this_spark_does_not_have(spark: SparkSession):
    with pytest.raises(LookupError, match="has no field 'neverThere'"):
        read_private(spark._jsparkSession, "neverThere")
