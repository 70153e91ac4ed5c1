"""Files through Hadoop's FileSystem, in the driver's own JVM: HDFS, object stores, whatever Spark can reach.

The atomic step is a rename that refuses a name that is taken (``FileContext``, where ``FileSystem.rename`` would move
into a folder that exists): HDFS promises it. A new file is written under another name first, for a name may be listed
before its text can be read. On object stores, where a rename copies and a file appears as it is closed, it is
``create(overwrite=false)``, as atomic as the store makes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from airflow_dagsched.spark.files.store import Entry, Fence
from airflow_dagsched.spark.java_objects import find_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The second is HDFS's: somebody has the file open who is just creating it.
_TAKEN = ("FileAlreadyExistsException", "AlreadyBeingCreatedException")
OBJECT_STORES = frozenset({"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "obs", "cosn"})
"""Schemes of file systems whose files appear whole, when they are closed."""


class HadoopStore:
    """A ``Store`` over ``org.apache.hadoop.fs.FileSystem``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._conf: Any = spark._jsc.hadoopConfiguration()
        self._contexts: dict[str, Any] = {}

    def _locate_path(self, path: str) -> tuple[Any, Any]:
        where = find_class(self._spark, "org.apache.hadoop.fs.Path")(path)
        return where.getFileSystem(self._conf), where

    def read_text(self, path: str) -> str:
        with _as_os_errors(path):
            system, where = self._locate_path(path)
            stream = system.open(where)
            try:
                # One call for the whole text: each one through py4j is a round trip to the JVM.
                return str(find_class(self._spark, "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
            finally:
                stream.close()

    def create_exclusive(self, path: str, text: str) -> bool:
        try:
            # There a rename is a copy and a removal, and a file appears whole, when it is closed.
            if path.partition("://")[0] in OBJECT_STORES:
                self._write_file(path, text, overwrite=False)
            else:
                self._write_aside(path, text)
        except FileExistsError:
            return False
        return True

    def _write_aside(self, path: str, text: str) -> None:
        # In the same folder: one operation of the name node. The dot keeps readers of the folder off.
        draft = f"{path.rpartition('/')[0]}/.draft-{uuid.uuid4().hex}"
        self._write_file(draft, text, overwrite=False)
        try:
            self._move(draft, path)
        except OSError:
            self.delete(draft)
            raise

    def write_text(self, path: str, text: str) -> None:
        self._write_file(path, text, overwrite=True)

    def _write_file(self, path: str, text: str, *, overwrite: bool) -> None:
        with _as_os_errors(path):
            system, where = self._locate_path(path)
            # Makes the folders above, too. The name is there from here on, the text from ``close`` on.
            stream = system.create(where, overwrite)
            stream.write(bytearray(text, "utf-8"))
            stream.close()

    def list(self, path: str) -> tuple[Entry, ...]:
        try:
            with _as_os_errors(path):
                system, where = self._locate_path(path)
                return tuple(sorted(map(_make_entry, system.listStatus(where)), key=lambda entry: entry.name))
        except FileNotFoundError:
            return ()

    def exists(self, path: str) -> bool:
        with _as_os_errors(path):
            system, where = self._locate_path(path)
            return bool(system.exists(where))

    def mkdirs(self, path: str) -> None:
        with _as_os_errors(path):
            system, where = self._locate_path(path)
            system.mkdirs(where)

    def rename(self, source: str, target: str) -> None:
        self._move(source, target)

    def _move(self, source: str, target: str) -> None:
        """By ``FileContext``; by ``FileSystem`` where the scheme has no such thing, which then is not atomic."""
        try:
            with _as_os_errors(target):
                system, where = self._locate_path(source)
                there = system.makeQualified(self._locate_path(target)[1])
                # ``FileSystem.rename`` would move *into* a folder of that name, and says False instead of why.
                self._get_context(system.getUri()).rename(system.makeQualified(where), there, self._make_no_options())
        except Unsupported:
            self._move_unless_there(source, target)

    def _get_context(self, uri: Any) -> Any:
        """The ``FileContext`` of a file system; Hadoop would make a new client at each call."""
        key = str(uri.toString())
        if key not in self._contexts:
            contexts = find_class(self._spark, "org.apache.hadoop.fs.FileContext")
            self._contexts[key] = contexts.getFileContext(uri, self._conf)
        return self._contexts[key]

    def _make_no_options(self) -> Any:
        """Without any, a rename does not write over what is there."""
        gateway: Any = self._spark.sparkContext._gateway
        # Java's varargs: py4j wants the array, also where it is empty.
        return gateway.new_array(find_class(self._spark, "org.apache.hadoop.fs.Options$Rename"), 0)

    def _move_unless_there(self, source: str, target: str) -> None:
        # Two steps, and another may come between: such a scheme offers no better.
        if self.exists(target):
            raise FileExistsError(f"{target}: the target of a rename exists")
        with _as_os_errors(source):
            system, where = self._locate_path(source)
            if not system.rename(where, self._locate_path(target)[1]):
                raise OSError(f"{source}: cannot be renamed to {target}")

    def exchange(self, one: str, other: str) -> bool:
        return False

    def delete(self, path: str) -> None:
        with _as_os_errors(path):
            system, where = self._locate_path(path)
            system.delete(where, True)

    def delete_empty(self, path: str) -> bool:
        """See ``Store``. Not recursive: Hadoop itself refuses where a file came meanwhile."""
        try:
            with _as_os_errors(path):
                system, where = self._locate_path(path)
                # Not recursive: a look before a recursive one could not see what comes between.
                return bool(system.delete(where, False))
        except OSError:
            return False

    def resolve(self, path: str) -> str:
        """See ``Store``. HDFS has no links."""
        return path

    def sync(self, paths: tuple[str, ...]) -> None:
        """See ``Store``. What is closed is kept by several machines."""

    def lock(self, path: str) -> AbstractContextManager[Fence] | None:
        """See ``Store``. Hadoop's file systems have none that outlives no holder."""
        return None


class Unsupported(OSError):
    """The file system has no ``FileContext``."""


def _make_entry(status: Any) -> Entry:
    folder = bool(status.isDirectory())
    # Hadoop has milliseconds.
    modified_ns = int(status.getModificationTime()) * 1_000_000
    return Entry(str(status.getPath().getName()), folder, 0 if folder else int(status.getLen()), modified_ns)


@contextmanager
def _as_os_errors(path: str) -> Iterator[None]:
    """Java's exceptions as the ones that ``Store`` names, with Java's message."""
    try:
        yield
    except Py4JJavaError as error:
        # By name: py4j raises one exception for all of Java's, so none can be caught by class.
        kind, message = error.java_exception.getClass().getSimpleName(), error.java_exception.getMessage()
        if kind in _TAKEN:
            raise FileExistsError(f"{path}: {message}") from error
        if kind == "UnsupportedFileSystemException":
            raise Unsupported(f"{path}: {message}") from error
        missing = kind in ("FileNotFoundException", "NoSuchFileException")
        raise (FileNotFoundError if missing else OSError)(f"{path}: {kind}: {message}") from error
