"""Files that a driver appends its events to, a line at a time, for whoever follows it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from airflow_dagsched.spark.files.driver_files import is_local
from airflow_dagsched.spark.files.store import make_local_path
from airflow_dagsched.spark.java_objects import find_class


class EventFile(Protocol):
    """Where lines are appended; each is there for readers when ``append`` returns."""

    def append(self, line: str) -> None: ...


class LocalEventFile:
    """An event file of this machine. Raises ``FileExistsError`` where it is there: it is another driver program's."""

    def __init__(self, path: str) -> None:
        self._path = Path(make_local_path(path))
        # O_EXCL: of two driver programs of one submit one gets the file, and the other refuses to run.
        self._path.touch(0o644, exist_ok=False)

    def append(self, line: str) -> None:
        # Closed after each line: what Python buffers, a driver that is killed takes with it.
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


class HadoopEventFile:
    """An event file of another file system that can append, such as HDFS. Raises as the local one."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._path = find_class(spark, "org.apache.hadoop.fs.Path")(path)
        self._fs = self._path.getFileSystem(spark._jsc.hadoopConfiguration())
        try:
            self._fs.create(self._path, False).close()
        except Py4JJavaError as error:
            # Java's class for it differs by file system; whether the file is there tells in all of them.
            if not self._fs.exists(self._path):
                raise
            raise FileExistsError(path) from error

    def append(self, line: str) -> None:
        # Closed after each line: HDFS shows other readers what was there at the last close.
        file = self._fs.append(self._path)
        try:
            file.write(bytearray((line + "\n").encode()))
        finally:
            file.close()


def open_event_file(path: str) -> EventFile:
    """A new event file at ``path``. Raises ``FileExistsError`` where it is there."""
    return LocalEventFile(path) if is_local(path) else HadoopEventFile(SparkSession.builder.getOrCreate(), path)
