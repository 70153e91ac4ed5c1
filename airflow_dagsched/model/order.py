"""Order in graphs: natural sort, topological order, strongly connected components, levels.

Graphs are lists of successor lists over ``0 .. n-1``. All is linear in nodes and edges (the order adds a
heap) and nothing recurses, so 100,000 nodes are fine. ``networkx`` has all of this, but importing it costs
0.3 s at every parse of a DAG file.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence

Successors = Sequence[Sequence[int]]
NaturalKey = tuple[tuple[tuple[int, str] | str, ...], str]

_DIGITS = re.compile("([0-9]+)")


def natural_key(text: str) -> NaturalKey:
    """Sort key that puts ``w2`` before ``w10``; the text itself breaks ties such as ``w1`` and ``w01``."""
    parts: list[tuple[int, str] | str] = [*_DIGITS.split(text)]
    parts[1::2] = map(_strip_zeros, parts[1::2])  # type: ignore[arg-type]  # every other one is of digits
    return tuple(parts), text


def _strip_zeros(digits: str) -> tuple[int, str]:
    stripped = digits.lstrip("0")
    # As numbers compare, of any length: ``int`` refuses more than 4,300 digits.
    return len(stripped), stripped


def sort_naturally(texts: Iterable[str]) -> list[str]:
    """``texts`` in natural order."""
    return sorted(texts, key=natural_key)


def reverse_edges(successors: Successors) -> list[list[int]]:
    """The same graph read backwards."""
    found: list[list[int]] = [[] for _ in successors]
    for node, nexts in enumerate(successors):
        for after in nexts:
            found[after].append(node)
    return found


def sort_topologically(successors: Successors) -> list[int]:
    """Nodes so that edges point forward; among the nodes that are free, the least comes first.

    Nodes on or behind a cycle are left out: the result is shorter than the graph exactly if it has a cycle.
    """
    if all(not nexts or min(nexts) > node for node, nexts in enumerate(successors)):
        return list(range(len(successors)))  # each is free, and the least, once all before it are done
    waiting = [0] * len(successors)
    for nexts in successors:
        for after in nexts:
            waiting[after] += 1
    free = [node for node, count in enumerate(waiting) if not count]
    order = []
    while free:
        node = heapq.heappop(free)  # the least, not any: equal graphs have one order
        order.append(node)
        for after in successors[node]:
            waiting[after] -= 1
            if not waiting[after]:
                heapq.heappush(free, after)
    return order


def measure_levels(successors: Successors, order: Iterable[int]) -> list[int]:
    """Length of the longest path to each node; ``order`` is topological."""
    found = [0] * len(successors)
    for node in order:
        for after in successors[node]:
            found[after] = max(found[after], found[node] + 1)
    return found


def find_strong_components(successors: Successors) -> list[int]:
    """For each node the least node of its strongly connected component (Tarjan, without recursion).

    Most graphs have no cycle, which their topological order tells in a fraction of the time.
    """
    count = len(successors)
    if len(sort_topologically(successors)) == count:
        return list(range(count))
    number, low, owner = [-1] * count, [0] * count, [-1] * count
    stack: list[int] = []
    for root in range(count):
        if number[root] < 0:
            _visit_from(root, successors, number, low, owner, stack)
    return owner


def _visit_from(
    root: int, successors: Successors, number: list[int], low: list[int], owner: list[int], stack: list[int]
) -> None:
    """Tarjan's walk from ``root``; ``number`` holds ``position on entry``, ``owner`` is filled on leaving."""
    walk = [(root, iter(successors[root]))]
    number[root] = low[root] = _enter_node(stack, root)
    while walk:
        node, nexts = walk[-1]
        after = next(nexts, None)
        if after is None:
            walk.pop()
            _leave_node(node, number, low, owner, stack)
            if walk:
                above = walk[-1][0]
                low[above] = min(low[above], low[node])
        elif number[after] < 0:
            number[after] = low[after] = _enter_node(stack, after)
            walk.append((after, iter(successors[after])))
        elif owner[after] < 0:  # still on the stack: on a cycle with ``node``
            low[node] = min(low[node], number[after])


def _enter_node(stack: list[int], node: int) -> int:
    """Position of ``node`` on the stack: rising along it, which is all that Tarjan's comparison needs."""
    stack.append(node)
    return len(stack) - 1


def _leave_node(node: int, number: list[int], low: list[int], owner: list[int], stack: list[int]) -> None:
    if low[node] != number[node]:
        return
    members = stack[number[node] :]
    del stack[number[node] :]
    least = min(members)
    for member in members:
        owner[member] = least


def find_cycle(successors: Successors, start: int, owner: Sequence[int]) -> list[int]:
    """A shortest cycle ``[start, ..., start]``; empty if there is none. ``owner`` is of ``find_strong_components``."""
    came: dict[int, int] = {}
    reached = [start]
    for node in reached:
        for after in successors[node]:
            # Breadth first, so the first way back is a shortest one; and no cycle leaves its component.
            if after == start:
                return _trace_path(came, node, start)
            if after not in came and owner[after] == owner[start]:
                came[after] = node
                reached.append(after)
    return []


def _trace_path(came: dict[int, int], last: int, start: int) -> list[int]:
    path = [start, last] if last != start else [start]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1] if last != start else [start, start]
