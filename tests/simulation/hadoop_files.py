"""A simulated HDFS below the real ``HadoopStore``: what ``org.apache.hadoop.fs.FileSystem`` does, call by call."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any

from airflow_dagsched.spark.files.clock import Clock
from airflow_dagsched.spark.files.hadoop_store import HadoopStore
from tests.simulation.tree import File, Folder, Node, Tree, detach
from tests.simulation.world import World


class HadoopFiles(HadoopStore):
    """A ``HadoopStore`` of one process whose file system is the simulated one."""

    def __init__(self, world: World, tree: Tree, clock: Clock) -> None:
        self._clock = clock
        self._system = FileSystem(world, tree)
        self._spark = SimpleNamespace(_jvm=_JVM)

    def _move(self, source: str, target: str) -> None:
        self._system.rename_new(source, target)

    def _locate_path(self, path: str) -> tuple[Any, Any]:
        return self._system, path

    def put(self, path: str, text: str) -> None:
        """A file as Spark's tasks write it: not there, then there."""
        self._system.put(path, text)


class _Jvm:
    """Java's classes, by their whole names, as far as the store asks for any."""


_JVM = _Jvm()
setattr(_JVM, "org.apache.commons.io.IOUtils", SimpleNamespace(toString=lambda stream, encoding: stream.text))


class FileSystem:
    """Files of one name space; every call is one step there."""

    def __init__(self, world: World, tree: Tree) -> None:
        self._world = world
        self._tree = tree

    def open(self, path: str) -> Any:
        self._world.point("open", path)
        node = self._tree.find(path)
        if not isinstance(node, File):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return _Open(node.text)

    def create(self, path: str, overwrite: bool) -> Any:
        """The name is there, without text; that comes when the stream is closed."""
        self._world.point("create", path)
        node = self._tree.find(path)
        if node is not None and (not overwrite or isinstance(node, Folder)):
            raise FileExistsError(errno.EEXIST, "file exists", path)
        return _Written(self._world, path, self._tree.write(path, ""))

    def put(self, path: str, text: str) -> None:
        self._world.point("put", path)
        self._tree.write(path, text)

    def listStatus(self, path: str) -> list[Any]:  # noqa: N802 - Hadoop's name
        self._world.point("list", path)
        node = self._tree.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        if isinstance(node, File):
            return [_Status(path.rpartition("/")[2], node)]
        return [_Status(name, child) for name, child in node.children.items()]

    def exists(self, path: str) -> bool:
        self._world.point("exists", path)
        return self._tree.find(path) is not None

    def mkdirs(self, path: str) -> bool:
        self._world.point("mkdirs", path)
        self._tree.make_folder(path)
        return True

    def rename_new(self, source: str, target: str) -> None:
        """``FileContext.rename`` without options."""
        self._world.point("rename", f"{source} -> {target}")
        moved = self._tree.find(source)
        if moved is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        if self._tree.find(target) is not None:
            raise FileExistsError(errno.EEXIST, "file exists", target)
        self._tree.folder(target.rpartition("/")[0])
        self._tree.take(source)
        self._tree.put(target, moved)
        if isinstance(moved, File):
            self._world.appeared(target, moved.text)

    def delete(self, path: str, recursive: bool) -> bool:
        self._world.point("delete", path)
        node = self._tree.find(path)
        if node is None:
            return False
        if isinstance(node, Folder) and node.children and not recursive:
            raise OSError(errno.ENOTEMPTY, "folder not empty", path)
        self._tree.take(path)
        detach(node)
        return True


class _Open:
    """A stream to read; what was there when it was opened."""

    def __init__(self, text: str) -> None:
        self.text = text

    def close(self) -> None: ...


class _Written:
    """A stream to write: its text appears when it is closed."""

    def __init__(self, world: World, path: str, file: File) -> None:
        self._world = world
        self._path = path
        self._file = file
        self._text = ""

    def write(self, text: bytes) -> None:
        self._text += text.decode()

    def close(self) -> None:
        self._world.point("close", self._path)
        if not self._file.attached:
            raise FileNotFoundError(errno.ENOENT, "the file was removed while it was written", self._path)
        self._file.text, self._file.modified = self._text, self._world.now


class _Status:
    """A ``FileStatus``."""

    def __init__(self, name: str, node: Node) -> None:
        self._name = name
        self._node = node

    def isDirectory(self) -> bool:  # noqa: N802
        return isinstance(self._node, Folder)

    def getModificationTime(self) -> int:  # noqa: N802
        return int(self._node.modified * 1000)

    def getLen(self) -> int:  # noqa: N802
        return len(self._node.text) if isinstance(self._node, File) else 0

    def getPath(self) -> _Status:  # noqa: N802
        return self

    def getName(self) -> str:  # noqa: N802
        return self._name
