"""Parts: what runs together although it need not be one step; and graphs drawn together by parts.

Pipelined channels and plain edges between steps of one color hold a part together: a plain edge orders two
steps, which one application can do as well as two. A buffered channel keeps its ends apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import reverse_edges, sort_topologically
from airflow_dagsched.plan.problem.colors import TASK

Parent = list[int] | dict[int, int]
"""Disjoint sets: each node's parent, a root's is itself."""


def find_parts(graph: Graph, colors: Sequence[int]) -> list[int]:
    """For each node the least node of its part; loops are never split, an ordinary task is its own part."""
    parent = list(graph.loop)
    for dataset in graph.datasets:
        src = dataset.src
        for reader in dataset.pipelined:
            # Where both have one parent they are joined already: no root need be looked for.
            if parent[src] != parent[reader] and colors[src] == colors[reader]:
                join_parts(parent, src, reader)
    for src, dst in graph.plain:
        if colors[src] == colors[dst]:
            join_parts(parent, src, dst)
    return [find_root(parent, node) for node in range(len(parent))]


def find_edges_between(graph: Graph, part: Sequence[int]) -> Sequence[Sequence[int]]:
    """The edges between different parts, each once, in order; ``part`` maps a node to its part's first node."""
    # No part but the loops, whose edges the graph has.
    if tuple(part) == graph.loop:
        return graph.condensed
    found: dict[int, set[int]] = {}
    for node, nexts in enumerate(graph.successors):
        if nexts:
            found.setdefault(part[node], set()).update([part[after] for after in nexts])
    for here, others in found.items():
        others.discard(here)
    return [sorted(found[node]) if node in found else [] for node in range(len(part))]


def is_acyclic(graph: Graph, group_of: Sequence[int]) -> bool:
    """Whether the groups ``group_of`` makes wait for each other without a cycle."""
    waiting = dict.fromkeys(group_of, 0)
    behind: dict[int, list[int]] = {}
    for of, after in {
        (group_of[node], group_of[after]) for node, nexts in enumerate(graph.successors) for after in nexts
    }:
        if of != after:
            waiting[after] += 1
            behind.setdefault(of, []).append(after)
    done = [of for of, count in waiting.items() if not count]
    for of in done:  # grows while it is walked (Kahn)
        for after in behind.get(of, ()):
            waiting[after] -= 1
            if not waiting[after]:
                done.append(after)
    return len(done) == len(waiting)


def merge_alike(group_of: Sequence[int], kind: Sequence[int], edges: Sequence[Sequence[int]]) -> list[int]:
    """For each node its home, homes of one kind drawn together where they wait for exactly the same.

    ``edges`` are those between homes, without cycles. Homes that wait for the same cannot wait for each
    other, so no cycle arises; and none starts later than it did.
    """
    above = reverse_edges(edges)
    merged = list(range(len(group_of)))
    first: dict[tuple[int, frozenset[int]], int] = {}
    for node in sort_topologically(edges):
        if group_of[node] == node and kind[node] != TASK:
            # By what they wait for after merging: two that wait for two which have become one wait for the same.
            key = kind[node], frozenset(merged[before] for before in above[node])
            merged[node] = first.setdefault(key, node)
    return [merged[of] for of in group_of]


def name_by_least(group_of: Sequence[int]) -> list[int]:
    """The same homes, each named by its least node."""
    least: dict[int, int] = {}
    return [least.setdefault(of, node) for node, of in enumerate(group_of)]


def cut_groups(graph: Graph, group_of: Sequence[int], number: Sequence[int]) -> list[int]:
    """The homes cut by ``number``, of which the first step of a loop counts; each named by its least node."""
    least: dict[tuple[int, int], int] = {}
    return [
        least.setdefault((group_of[node], number[graph.loop[node]]), node) if graph.is_step(node) else node
        for node in range(len(group_of))
    ]


def find_root(parent: Parent, node: int) -> int:
    """The root of ``node``'s part."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]  # halves the path for whoever comes next
        node = parent[node]
    return node


def join_parts(parent: Parent, one: int, other: int) -> None:
    """Make two parts one. The least node of a part is its root. Halving paths alone keeps this near linear."""
    first, second = find_root(parent, one), find_root(parent, other)
    # By number, not by size: the root names the part, and names must not depend on the order of joins.
    parent[max(first, second)] = min(first, second)
