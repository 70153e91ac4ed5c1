"""All files at one moment, to go on from as often as is asked for; and what a call that dies half-way leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.simulation.places import Link, Places
from tests.simulation.tree import File, Folder, Node

_EXPIRES = re.compile(r'"expires": [1-9][\d.e+]*')


class Kept(NamedTuple):
    """A file, folder or link, as it was."""

    kind: str
    text: str
    """Of a file; the target of a link."""
    modified: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All files at one moment: what a machine whose processes died has left."""

    nodes: Mapping[str, Kept]
    """By path, those above first."""
    now: float
    mounts: frozenset[str] = frozenset()

    @property
    def key(self) -> object:
        """Equal for snapshots that are the same but for the time."""
        nodes = self.nodes.items()
        return self.mounts, frozenset(
            (path, kind, _EXPIRES.sub('"expires": 1', text)) for path, (kind, text, _) in nodes
        )

    def paths(self, folder: str) -> tuple[str, ...]:
        """The files below ``folder``, by name."""
        return tuple(path for path, each in self.nodes.items() if each.kind == "file" and path.startswith(f"{folder}/"))

    def without(self, path: str) -> Snapshot:
        """With the file or folder removed."""
        rest = {at: each for at, each in self.nodes.items() if at != path and not at.startswith(f"{path}/")}
        return replace(self, nodes=rest)

    def with_text(self, path: str, text: str) -> Snapshot:
        """With another text in the file, written now."""
        return replace(self, nodes={**self.nodes, path: Kept("file", text, self.now)})


def take(tree: Places, now: float) -> Snapshot:
    """The files as they are."""
    nodes = {"": Kept("folder", "", tree.root.modified)}
    folders = [("", tree.root)]
    for above, folder in folders:
        for name, node in folder.children.items():
            path = f"{above}/{name}"
            if node.__class__ is File:
                nodes[path] = Kept("file", node.text, node.modified)
            elif node.__class__ is Link:
                nodes[path] = Kept("link", node.target, node.modified)
            else:
                nodes[path] = Kept("folder", "", node.modified)
                folders.append((path, node))
    return Snapshot(nodes, now, tree.mounts)


def restore(snapshot: Snapshot, tree: Places) -> None:
    """Make the new ``tree`` what it was; nobody holds a lock."""
    folders: dict[str, Folder] = {"": tree.root}
    for path, each in snapshot.nodes.items():
        if not path:
            continue
        above, _, name = path.rpartition("/")
        node: Node
        if each.kind == "file":
            node = File(each.text, each.modified)
        elif each.kind == "link":
            node = Link(each.text, each.modified)
            tree.has_links = True
        else:
            node = folders[path] = Folder(each.modified)
        folders[above].children[name] = node
    tree.mounts = snapshot.mounts


def halfway(operation: str, path: str, before: Snapshot, after: Snapshot) -> tuple[Snapshot, ...]:
    """What there may be if the process dies within the call; nothing for a call that is done in one step.

    A text that is being written is there by half. Of several folders the first is made.
    """
    left: list[Snapshot] = []
    written = path.partition(" for ")[0]
    if operation in {"create", "close", "put"} and (file := after.nodes.get(written)) and file.text:
        left.append(after.with_text(written, file.text[: len(file.text) // 2]))
    made = [at for at in after.nodes if at not in before.nodes]
    if operation in {"create", "put", "mkdirs"} and len(made) > 1:
        left.append(replace(after, nodes={at: each for at, each in after.nodes.items() if at not in made[1:]}))
    return tuple(left)
