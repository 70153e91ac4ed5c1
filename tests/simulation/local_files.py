"""The simulated local store: what ``LocalStore`` does, system call by system call."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_dagsched.spark.files.store import Entry, Fence
from tests.simulation.tree import File, Folder, Node, Tree, detach
from tests.simulation.world import World


def entry_of(name: str, node: Node) -> Entry:
    """As a listing shows it."""
    folder = isinstance(node, Folder)
    return Entry(name, folder, 0 if folder else len(node.text), int(node.modified * 1e9))


class LocalFiles:
    """A ``Store`` of one process. Each point is one system call that matters."""

    def __init__(self, world: World, tree: Tree) -> None:
        self._world = world
        self._tree = tree

    def read_text(self, path: str) -> str:
        self._world.point("read", path)
        node = self._tree.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, "is a folder", path)
        return node.text

    def create_exclusive(self, path: str, text: str) -> bool:
        """See ``Store``. A hard link to a draft that is complete."""
        draft = self._draft(path, text)
        try:
            self._world.point("link", path)
            if self._tree.find(path) is not None:
                return False
            file = self._tree.find(draft)
            assert isinstance(file, File)
            self._tree.put(path, file)
            self._world.appeared(path, text)
            return True
        finally:
            self._world.point("unlink", draft)
            self._tree.take(draft)

    def write_text(self, path: str, text: str) -> None:
        draft = self._draft(path, text)
        self._world.point("replace", path)
        self._tree.put(path, self._tree.take(draft))

    def put(self, path: str, text: str) -> None:
        """A file as Spark's tasks write it: not there, then there."""
        self._world.point("put", path)
        self._tree.write(path, text)

    def _draft(self, path: str, text: str) -> str:
        folder, _, name = path.rpartition("/")
        draft = f"{folder}/.draft-{self._world.draw_bits(64):016x}"
        self._world.point("create", f"{draft} for {name}")
        self._tree.write(draft, text)
        return draft

    def list(self, path: str) -> tuple[Entry, ...]:
        self._world.point("list", path)
        node = self._tree.find(path)
        if not isinstance(node, Folder):
            return ()
        return tuple([entry_of(name, node.children[name]) for name in sorted(node.children)])

    def exists(self, path: str) -> bool:
        self._world.point("exists", path)
        return self._tree.find(path) is not None

    def mkdirs(self, path: str) -> None:
        self._world.point("mkdirs", path)
        self._tree.make_folder(path)

    def rename(self, source: str, target: str) -> None:
        """``renameat2`` with ``RENAME_NOREPLACE``."""
        self._world.point("rename", f"{source} -> {target}")
        moved = self._tree.find(source)
        if moved is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        if self._tree.find(target) is not None:
            raise FileExistsError(errno.EEXIST, "the target of a rename exists", target)
        self._tree.folder(target.rpartition("/")[0])
        self._tree.put(target, self._tree.take(source))

    def exchange(self, one: str, other: str) -> bool:
        self._world.point("exchange", f"{one} <-> {other}")
        first, second = self._tree.folder(one), self._tree.folder(other)
        for path, node in ((one, second), (other, first)):
            above, _, name = path.rpartition("/")
            self._tree.folder(above).children[name] = node
        return True

    def delete(self, path: str) -> None:
        """See ``Store``. File by file, as ``rmtree`` does."""
        node = self._tree.find(path)
        if isinstance(node, Folder):
            for _ in range(2):  # what is added meanwhile is removed the second time
                for name in sorted(node.children):
                    self.delete(f"{path}/{name}")
            self._world.point("rmdir", path)
            if node.children:
                raise OSError(errno.ENOTEMPTY, "folder not empty", path)
        else:
            self._world.point("unlink", path)
        if (node := self._tree.find(path)) is not None:
            self._tree.take(path)
            detach(node)

    def delete_empty(self, path: str) -> bool:
        self._world.point("rmdir", path)
        node = self._tree.find(path)
        if not isinstance(node, Folder) or node.children:
            return False
        self._tree.take(path)
        return True

    def resolve(self, path: str) -> str:
        return path

    def sync(self, paths: tuple[str, ...]) -> None:
        """No power cuts here."""

    @contextmanager
    def lock(self, path: str) -> Iterator[Fence]:
        """``flock``: freed by a kill, kept by a frozen process."""
        self._world.point("lock", path)
        file = self._tree.find(path) or self._tree.write(path, "")
        assert isinstance(file, File)
        with self._flocked(file):
            yield Fence()

    @contextmanager
    def _flocked(self, file: File) -> Iterator[None]:
        world = self._world
        while file.holder is not None:
            world.block(file.waiting)
        me = world.current
        assert me is not None
        file.holder = me
        world.take_over()

        def release() -> None:
            if file.holder is me:
                file.holder = None
                world.unblock(file.waiting)

        me.process.releases.append(release)
        try:
            yield
        finally:
            if release in me.process.releases:
                me.process.releases.remove(release)
            release()
