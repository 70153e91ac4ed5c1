"""Opens a session without what costs each driver more than it is worth."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession, types

from airflow_dagsched.spark.java_objects import find_class
from airflow_dagsched.spark.session.late_ml import open_first_session
from airflow_dagsched.spark.session.redaction import redact_settings

NUMPY_CONVERTERS = ("NumpyScalarConverter", "NumpyArrayConverter")
"""PySpark's, each asked about every argument of a call to Java."""


def start_spark(secrets: Iterable[str] = (), settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """The session of an application of this process's own, which shows no ``secrets``."""
    look_for_numpy_late()
    look_up_names_once()
    options = {**settings, **redact_settings(secrets)}
    spark = open_first_session(SparkContext.getOrCreate(SparkConf().setAll([*options.items()])), options)
    leave_out_checksums(spark)
    return spark


def look_for_numpy_late() -> None:
    """Have an argument of a call to Java be no number of numpy's as long as numpy is not loaded, once a process.

    To find that out PySpark loads ``pyspark.testing``, and with it pandas: a third of a second.
    """
    for name in NUMPY_CONVERTERS:
        converter: Any = getattr(types, name, None)
        if converter is not None and not hasattr(converter.can_convert, "__wrapped__"):
            converter.can_convert = _ask_with_numpy(converter.can_convert)


def _ask_with_numpy(original: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    @wraps(original)
    def can_convert(self: Any, obj: Any) -> bool:
        return "numpy" in sys.modules and original(self, obj)

    return can_convert


def look_up_names_once() -> None:
    """Have Python ask Java only once which class a name stands for, or whether a class has that method.

    PySpark asks for both with each of its calls: ``col("a")`` takes thirteen messages with Java, seven of them for
    names. For a name without its package Java looks through all its jars, in one package after the other.
    """
    for kind, known in ((JVMView, JavaClass), (JavaClass, JavaMember)):
        if not hasattr(kind.__getattr__, "__wrapped__"):
            kind.__getattr__ = _remember(kind.__getattr__, known)


def _remember(original: Callable[[Any, str], Any], known: type) -> Callable[[Any, str], Any]:
    """:param known: of what is found, what stays what it is."""

    @wraps(original)
    def look_up(self: Any, name: str) -> Any:
        found = original(self, name)
        if isinstance(found, known):
            # Of this one from now on, without another look: Python looks here first.
            self.__dict__[name] = found
        return found

    return look_up


def leave_out_checksums(spark: SparkSession) -> None:
    """Have no ``.crc`` file written beside each file in a folder of this machine.

    Where Hadoop has no native library, as in PySpark's package, it starts a process, ``chmod``, twice for each file and
    twice more for its checksum. An older checksum goes as its file is written over. Other file systems have none, and
    executors of other processes go on writing theirs.
    """
    local = find_class(spark, "java.net.URI")("file:///")
    # Hadoop has one of it in a process, so this is what all writers get.
    system = find_class(spark, "org.apache.hadoop.fs.FileSystem").get(local, spark._jsc.hadoopConfiguration())
    system.setWriteChecksum(False)
