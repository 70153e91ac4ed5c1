"""Functions of Spark's ML, registered as PySpark's ML is first imported, and not as each application begins.

::

    spark-mllib's jar ── a service that each new session runs: registers two functions, by Scala's reflection
    here              ── a session without it ── import pyspark.ml ── runs it

Scala's reflection takes half a second to begin with, and most applications never ask for it.
"""

from __future__ import annotations

import sys
from typing import Any

from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.class_path import DRIVER_CLASS_PATH, leave_out_unsigned
from airflow_dagsched.spark.java_objects import find_class, find_object, make_scala_map

ML = "pyspark.ml"
SERVICE = "org.apache.spark.sql.ml.InternalFunctionRegistration"
EXTENSIONS = "org.apache.spark.sql.SparkSessionExtensions"
PROVIDERS = f"META-INF/services/{EXTENSIONS}Provider"
ADDING = ("spark.sql.extensions", "spark.jars")
"""Settings of authors whose own Java code may extend sessions, or ask for ML's functions; a class path is another."""


class MlImport:
    """Sees that PySpark's ML is imported; finds no module itself."""

    def __init__(self) -> None:
        self.was_seen = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Called for each module that is not loaded yet."""
        if fullname == ML:
            self.was_seen = True
            _register_functions()


SEEN = MlImport()


def register_ml_late() -> None:
    """Have ML's functions registered when this process imports PySpark's ML, if it does."""
    if SEEN not in sys.meta_path:
        sys.meta_path.insert(0, SEEN)


def open_first_session(sc: SparkContext, options: dict[str, str]) -> SparkSession:
    """The first session of ``sc``, which was started with these ``options``."""
    register_ml_late()
    if ML in sys.modules or SEEN.was_seen or _is_extended(sc) or not _is_ml_alone(sc):
        return SparkSession(sc, options=options)
    jvm: Any = sc._jvm
    none, nothing = find_object(sc, "scala.None"), make_scala_map(sc, [])
    make = SparkSession._get_j_spark_session_class(jvm)
    # Spark's own constructors run the services; this one takes what they would have added. Its settings are the
    # context's, which has the options.
    java = make(sc._jsc.sc(), none, none, find_class(sc, EXTENSIONS)(), nothing, nothing)
    return SparkSession(sc, jsparkSession=java)


def _is_extended(sc: SparkContext) -> bool:
    """Whether an author's Java code may be there."""
    # Not by ``getConf``: it copies all of them, each by two messages with Java.
    conf = sc._conf
    path = leave_out_unsigned(conf.get(DRIVER_CLASS_PATH, ""))
    return bool(path) or any(conf.get(name, "") for name in ADDING)


def _is_ml_alone(sc: SparkContext) -> bool:
    """Whether the service that this module knows is the only one that a session would run."""
    jvm: Any = sc._jvm
    providers = jvm.java.lang.Thread.currentThread().getContextClassLoader().getResources(PROVIDERS)
    urls = []
    while providers.hasMoreElements():
        urls.append(str(providers.nextElement()))
    return len(urls) == 1 and "/spark-mllib_" in urls[0]


def _register_functions() -> None:
    sc = SparkContext._active_spark_context
    if sc is None:
        return
    service = find_class(sc, SERVICE)
    if isinstance(service, JavaClass):  # else no jar has it
        service().apply(find_class(sc, EXTENSIONS)())
