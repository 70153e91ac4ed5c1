"""Files and folders in memory, in which both kinds of simulated stores keep theirs. No semantics, no time passes."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any


class File:
    """A file. ``holder`` and ``waiting`` are those of its lock (``flock`` locks the file, not its name)."""

    __slots__ = ("attached", "holder", "modified", "text", "waiting")

    def __init__(self, text: str, modified: float) -> None:
        self.text = text
        self.modified = modified
        self.attached = True
        """Whether it still has a name."""
        self.holder: object = None
        self.waiting: list[object] = []


class Folder:
    """A folder."""

    __slots__ = ("children", "modified")

    def __init__(self, modified: float) -> None:
        self.children: dict[str, Node] = {}
        self.modified = modified


Node = File | Folder


@lru_cache(maxsize=10_000)
def split_path(path: str) -> tuple[str, ...]:
    """Names of the folders on the way, and the last one's."""
    return tuple(filter(None, path.split("/")))


class Tree:
    """All files of the simulated world. ``now`` dates what changes."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.root = Folder(0.0)

    def find(self, path: str) -> Node | None:
        """What has this name."""
        node: Any = self.root
        try:
            for name in split_path(path):
                node = node.children[name]
        # No such name; or what should be a folder is a file, which has none.
        except (KeyError, AttributeError):
            return None
        return node

    def folder(self, path: str) -> Folder:
        """The folder; raises where there is none."""
        node = self.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
        return node

    def make_folder(self, path: str) -> Folder:
        """The folder, with those above it, made where it is missing."""
        node = self.root
        for name in split_path(path):
            child = node.children.get(name)
            if child is None:
                child = Folder(self._now())
                self._put(node, name, child)
            elif not isinstance(child, Folder):
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
            node = child
        return node

    def put(self, path: str, node: Node) -> None:
        """Give the node this name, whatever had it; the folder must be there."""
        above, _, name = path.rpartition("/")
        folder = self.folder(above)
        if (before := folder.children.get(name)) is not None:
            detach(before)
        self._put(folder, name, node)

    def _put(self, folder: Folder, name: str, node: Node) -> None:
        folder.children[name] = node
        folder.modified = self._now()

    def take(self, path: str) -> Node:
        """Take the name away from what has it."""
        above, _, name = path.rpartition("/")
        folder = self.folder(above)
        node = folder.children.pop(name, None)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        folder.modified = self._now()
        return node

    def write(self, path: str, text: str) -> File:
        """A file of this name, with its folders, in place of any other."""
        self.make_folder(path.rpartition("/")[0])
        file = File(text, self._now())
        self.put(path, file)
        return file

    def files(self, path: str = "") -> Iterator[tuple[str, File]]:
        """Every file below ``path`` with its whole name, by name."""
        node = self.find(path)
        if isinstance(node, File):
            yield path, node
        elif node is not None:
            for name in sorted(node.children):
                yield from self.files(f"{path}/{name}")


def detach(node: Node) -> None:
    """Mark the files in ``node`` as gone: who has one open finds out when closing it."""
    if isinstance(node, File):
        node.attached = False
    else:
        for child in node.children.values():
            detach(child)
