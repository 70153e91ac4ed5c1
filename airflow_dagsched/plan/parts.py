"""Parts: what pipelined channels of one color hold together; and graphs drawn together by parts."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.graph import Graph


def parts_of(graph: Graph, colors: Sequence[int]) -> list[int]:
    """For each node the least node of its part; loops are never split, an ordinary task is its own part."""
    parent = list(graph.loop)
    for src, dst in graph.pipelined:
        if colors[src] == colors[dst]:
            _join(parent, src, dst)
    return [_find(parent, node) for node in range(len(parent))]


def quotient(graph: Graph, part: Sequence[int]) -> list[list[int]]:
    """The edges between different parts, each once, in order; ``part`` maps a node to its part's first node."""
    found: dict[int, set[int]] = {}
    for node, nexts in enumerate(graph.successors):
        here = part[node]
        for after in nexts:
            if part[after] != here:
                found.setdefault(here, set()).add(part[after])
    return [sorted(found[node]) if node in found else [] for node in range(len(part))]


def _find(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def _join(parent: list[int], one: int, other: int) -> None:
    """The least node of a part is its root. Halving paths alone keeps this near linear."""
    first, second = _find(parent, one), _find(parent, other)
    parent[max(first, second)] = min(first, second)
