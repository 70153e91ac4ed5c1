"""Links and mount points in the simulated stores: what Linux does with names that lead elsewhere.

::

    /links/clean -> /data/clean       a link: names below it are names below its target; itself it is moved, or removed
    /data/clean/p=2                   a mount point: a rename over its edge is EXDEV, one of itself is EBUSY
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from airflow_dagsched.spark.files.clock import Clock
from tests.simulation.hadoop_files import HadoopFiles
from tests.simulation.local_files import LocalFiles
from tests.simulation.tree import Folder, Node, Tree
from tests.simulation.world import World


class Link(Folder):
    """A symbolic link to a folder."""

    __slots__ = ("target",)

    def __init__(self, target: str, modified: float) -> None:
        super().__init__(modified)
        self.target = target


class Places(Tree):
    """A tree with links and mount points."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__(now)
        self.has_links = False
        self.mounts: frozenset[str] = frozenset()

    def link(self, path: str, target: str) -> None:
        """A link at ``path``."""
        self.has_links = True
        self.make_folder(path.rpartition("/")[0])
        self.put(path, Link(target, self._now()))

    def real(self, path: str) -> str:
        """The path without links in it."""
        if not self.has_links:
            return path
        node: Node | None = self.root
        names = [name for name in path.split("/") if name]
        for at, name in enumerate(names, 1):
            node = node.children.get(name) if isinstance(node, Folder) else None
            if isinstance(node, Link):
                return self.real("/".join((node.target, *names[at:])))
        return path

    def find(self, path: str) -> Node | None:
        return super().find(self.real(path) if self.has_links else path)

    def make_folder(self, path: str) -> Folder:
        return super().make_folder(self.real(path))

    def name(self, path: str) -> str:
        """The path without links above its last name: what a rename or a removal is about."""
        above, _, name = path.rpartition("/")
        return f"{self.real(above)}/{name}"

    def is_link(self, path: str) -> bool:
        """Whether the name itself is a link."""
        above, _, name = path.rpartition("/")
        folder = self.find(above)
        return isinstance(folder, Folder) and isinstance(folder.children.get(name), Link)

    def check_same_disk(self, one: str, other: str) -> None:
        """Raise as a rename between the two does."""
        one, other = self.name(one), self.name(other)
        if {one, other} & self.mounts:
            raise OSError(errno.EBUSY, "is a mount point", one, None, other)
        if self._disk(one) != self._disk(other):
            raise OSError(errno.EXDEV, "is on another file system", one, None, other)

    def _disk(self, path: str) -> str:
        return max((mount for mount in self.mounts if path.startswith(f"{mount}/")), key=len, default="")


class LocalPlaces(LocalFiles):
    """Local files, some of them elsewhere."""

    def __init__(self, world: World, tree: Places) -> None:
        super().__init__(world, tree)
        self._places = tree

    def resolve(self, path: str) -> str:
        return self._places.real(path)

    def rename(self, source: str, target: str) -> None:
        self._places.check_same_disk(source, target)
        super().rename(source, target)

    def exchange(self, one: str, other: str) -> bool:
        self._places.check_same_disk(one, other)
        return super().exchange(one, other)

    def delete(self, path: str) -> None:
        """See ``Store``. Of a link the name goes, and nothing behind it."""
        if not self._places.is_link(path):
            super().delete(path)
            return
        self._world.point("unlink", path)
        self._tree.take(path)


class HadoopPlaces(HadoopFiles):
    """HDFS, which has no links, with zones that no rename leaves."""

    def __init__(self, world: World, tree: Places, clock: Clock) -> None:
        super().__init__(world, tree, clock)
        self._places = tree

    def _move(self, source: str, target: str) -> None:
        self._places.check_same_disk(source, target)
        super()._move(source, target)
