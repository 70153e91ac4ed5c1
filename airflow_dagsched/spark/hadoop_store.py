"""Files through Hadoop's FileSystem, in the driver's own JVM: HDFS, object stores, whatever Spark can reach.

``create(overwrite=false)`` is the atomic step. The name may appear before its text does: a record whose text
is torn counts as not written (``commits``), a torn lease as one of its file's age (``leases``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from airflow_dagsched.spark.store import Entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TAKEN = ("FileAlreadyExistsException", "AlreadyBeingCreatedException")
LOCK_STALE_S = 900.0
"""A lock file of this age was left by a dead process: a swap is renames only, seconds at most."""


class HadoopStore:
    """A ``Store`` over ``org.apache.hadoop.fs.FileSystem``."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsc.hadoopConfiguration()

    def _at(self, path: str) -> tuple[Any, Any]:
        where = self._jvm.org.apache.hadoop.fs.Path(path)
        return where.getFileSystem(self._conf), where

    def read_text(self, path: str) -> str:
        with _as_os_errors(path):
            system, where = self._at(path)
            stream = system.open(where)
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def create_exclusive(self, path: str, text: str) -> bool:
        try:
            self._write(path, text, overwrite=False)
            return True
        except FileExistsError:
            return False

    def write_text(self, path: str, text: str) -> None:
        self._write(path, text, overwrite=True)

    def _write(self, path: str, text: str, *, overwrite: bool) -> None:
        with _as_os_errors(path):
            system, where = self._at(path)
            stream = system.create(where, overwrite)
            stream.write(bytearray(text, "utf-8"))
            stream.close()

    def list(self, path: str) -> tuple[Entry, ...]:
        try:
            with _as_os_errors(path):
                system, where = self._at(path)
                return tuple(sorted(map(_entry, system.listStatus(where)), key=lambda entry: entry.name))
        except FileNotFoundError:
            return ()

    def exists(self, path: str) -> bool:
        with _as_os_errors(path):
            system, where = self._at(path)
            return bool(system.exists(where))

    def mkdirs(self, path: str) -> None:
        with _as_os_errors(path):
            system, where = self._at(path)
            system.mkdirs(where)

    def rename(self, source: str, target: str) -> None:
        """See ``Store``. Hadoop would move into a folder that exists, so that is checked first."""
        if self.exists(target):
            raise FileExistsError(f"{target}: the target of a rename exists")
        with _as_os_errors(source):
            system, where = self._at(source)
            if not system.rename(where, self._at(target)[1]):
                raise OSError(f"{source}: cannot be renamed to {target}")

    def exchange(self, one: str, other: str) -> bool:
        return False

    def delete(self, path: str) -> None:
        with _as_os_errors(path):
            system, where = self._at(path)
            system.delete(where, True)

    def delete_empty(self, path: str) -> bool:
        if not self.exists(path) or self.list(path):
            return False
        self.delete(path)
        return True

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        """See ``Store``. A file that exists while the lock is held; a dead holder's is broken when stale."""
        owner = uuid.uuid4().hex
        while not self.create_exclusive(path, owner):
            self._break_if_stale(path)
            time.sleep(0.2)
        try:
            yield
        finally:
            self.delete(path)

    def _break_if_stale(self, path: str) -> None:
        """Of those that find the lock stale one renames it away; the others fail to and wait on."""
        folder, _, name = path.rpartition("/")
        age = [entry.modified_ns for entry in self.list(folder) if entry.name == name]
        if age and time.time() - age[0] / 1e9 > LOCK_STALE_S:
            broken = f"{path}.{uuid.uuid4().hex}"
            try:
                self.rename(path, broken)
            except OSError:
                return
            self.delete(broken)


def _entry(status: Any) -> Entry:
    folder = bool(status.isDirectory())
    modified_ns = int(status.getModificationTime()) * 1_000_000
    return Entry(str(status.getPath().getName()), folder, 0 if folder else int(status.getLen()), modified_ns)


@contextmanager
def _as_os_errors(path: str) -> Iterator[None]:
    """Java's exceptions as the ones that ``Store`` names, with Java's message."""
    try:
        yield
    except Py4JJavaError as error:
        kind, message = error.java_exception.getClass().getSimpleName(), error.java_exception.getMessage()
        if kind in _TAKEN:
            raise FileExistsError(f"{path}: {message}") from error
        missing = kind in ("FileNotFoundException", "NoSuchFileException")
        raise (FileNotFoundError if missing else OSError)(f"{path}: {kind}: {message}") from error
