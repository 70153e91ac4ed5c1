"""Plans and expressions as Spark writes them in JSON: a list of nodes, each before its children."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Node:
    """Of a plan or of an expression."""

    kind: str
    """Name of Spark's class, without its package."""
    fields: Mapping[str, Any]
    children: tuple[Node, ...]


def build_tree(nodes: Sequence[Mapping[str, Any]]) -> Node:
    """The root of what Spark's ``toJSON`` lists."""
    waiting: list[Node] = []
    for fields in reversed(nodes):
        children = tuple(waiting.pop() for _ in range(fields["num-children"]))
        waiting.append(Node(_name_kind(fields["class"]), fields, children))
    (root,) = waiting
    return root


def fold_tree(root: Node, combine: Callable[[Node, tuple[T, ...]], T]) -> T:
    """What ``combine`` makes of the root: it gets each node, leftmost leaf first, with what it made of its children."""
    made: list[T] = []
    for node in _order_from_below(root):
        first = len(made) - len(node.children)
        below = tuple(made[first:])
        del made[first:]
        made.append(combine(node, below))
    return made[0]


def read_expressions(value: Any) -> tuple[Node, ...]:
    """A field that has any number of expressions."""
    return tuple(map(build_tree, value or ()))


def find_kind(root: Node, kind: str) -> Node | None:
    """The first node of that kind, from the root downwards."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.kind == kind:
            return node
        waiting.extend(reversed(node.children))
    return None


def _order_from_below(root: Node) -> Iterator[Node]:
    # Not by recursion: a plan is as deep as an author's loop over ``withColumn`` is long.
    waiting = [(root, False)]
    while waiting:
        node, seen = waiting.pop()
        if seen:
            yield node
            continue
        waiting.append((node, True))
        waiting.extend((child, False) for child in reversed(node.children))


def _name_kind(name: str) -> str:
    return name.rpartition(".")[2].rstrip("$")
