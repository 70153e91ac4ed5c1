"""Topological orders that keep together what belongs together."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.order import reverse_edges


def walk_depth_first(successors: Sequence[Sequence[int]]) -> list[int]:
    """A step right behind what it waits for, where that can be: chains and branches stay in one run.

        a ──> b ──> e        a b c d e, not a c b d e
        c ──> d ──> e

    A walk back from the sinks that puts a node down once all above it are (postorder on the reversed graph).
    """
    above = reverse_edges(successors)
    placed = [False] * len(successors)
    order: list[int] = []
    for sink in range(len(successors)):
        if successors[sink] or placed[sink]:
            continue
        # A stack of its own: a chain of 1,000 steps would exceed Python's recursion limit.
        stack = [(sink, iter(above[sink]))]
        placed[sink] = True
        while stack:
            node, befores = stack[-1]
            before = next((one for one in befores if not placed[one]), None)
            if before is None:
                order.append(node)
                stack.pop()
            else:
                placed[before] = True
                stack.append((before, iter(above[before])))
    return order
