"""A run's way into the application that another process holds: its own session, over the same Java."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from airflow_dagsched.spark.session.late_ml import register_ml_late
from airflow_dagsched.spark.session.opening import look_for_numpy_late, look_up_names_once
from airflow_dagsched.spark.session.private_fields import read_private
from airflow_dagsched.spark.session.redaction import list_redactions


@dataclass
class ApplicationLost(RuntimeError):
    """The application cannot be had; the message is what its keeper met."""

    reason: str

    def __str__(self) -> str:
        return self.reason


def attach_session(secrets: Iterable[str], lost: str = "") -> SparkSession:
    """A new session of the application whose gateway the environment names, as this process's own.

    :param secrets: that Spark does not show from now on.
    :param lost: why there is no application, if the keeper says so.
    Raises :class:`ApplicationLost`.
    """
    if lost:
        raise ApplicationLost(lost)
    look_for_numpy_late()
    look_up_names_once()
    register_ml_late()
    SparkContext._ensure_initialized()
    gateway: Any = SparkContext._gateway
    jvm: Any = SparkContext._jvm
    root = jvm.SparkSession.getDefaultSession()
    if root.isEmpty() or root.get().sparkContext().isStopped():
        raise ApplicationLost("SparkContext was shut down")
    java = root.get().sparkContext()
    for name, pattern in list_redactions(secrets, lambda name: _read_setting(java.conf(), name)).items():
        # New sessions take their settings from here, and Spark's own pages and logs look here each time.
        java.conf().set(name, pattern)
    own = jvm.JavaSparkContext(java)
    sc = SparkContext(jsc=own, gateway=gateway, conf=SparkConf(_jconf=java.getConf()))
    # As the session that a driver program makes: the default one, and this thread's.
    return SparkSession(sc, jsparkSession=root.get().newSession())


def _read_setting(conf: Any, name: str) -> str | None:
    return str(conf.get(name)) if conf.contains(name) else None


def let_go() -> None:
    """Let nothing of this run go on in Java, as far as this process can say so at once."""
    sc = SparkContext._active_spark_context
    if sc is not None:
        sc.cancelAllJobs()


def remove_rest() -> None:
    """Remove what PySpark made for this run, and Java would keep for as long as it runs: a folder and a connection."""
    sc = SparkContext._active_spark_context
    if sc is None:
        return
    shutil.rmtree(sc._temp_dir, ignore_errors=True)
    with suppress(Py4JError, LookupError):  # Java is gone, or has another name for it
        _close_accumulator(sc)


def _close_accumulator(sc: Any) -> None:
    """Close what Java has opened to hand accumulators' values to this process. It is no socket that is closed when
    nobody has it any more.
    """
    opened = read_private(sc._javaAccumulator, "socket")
    if opened is not None:
        # PySpark takes the end of a connection for an error, and prints it.
        sc._accumulatorServer.handle_error = lambda *_: None
        opened.close()
