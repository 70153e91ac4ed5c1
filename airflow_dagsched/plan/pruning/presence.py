"""On which workers a step is, and on which rows can reach it: Jet's rules P1 to P4, one pass over the edges.

    scan on w1 w2 ──here──> map on w1 w2 ──to w1──> sum on w1

An edge carries rows to the same worker (``forward``), to all (``shuffle``, ``broadcast``) or to one (``single``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct


class Edge(Struct, frozen=True):
    """Rows go from ``src`` to ``dst``."""

    src: str
    dst: str
    reach: Literal["here", "all", "one"]
    worker: str | None = None
    """Of reach ``one``."""


def find_targets(edge: Edge, worker: str, workers: Iterable[str]) -> frozenset[str]:
    """The workers that rows of ``worker`` go to along ``edge``."""
    match edge.reach:
        case "here":
            return frozenset({worker})
        case "all":
            return frozenset(workers)
        case "one":
            return frozenset({edge.worker or worker})  # nobody was named: the writer's own


def spread_presence(
    order: Sequence[str], start: Mapping[str, frozenset[str]], edges: Iterable[Edge], workers: Sequence[str]
) -> dict[str, frozenset[str]]:
    """For each step of ``order`` (topological) the workers it is on: at the start, and where its inputs send."""
    inbound: dict[str, list[Edge]] = {}
    for edge in edges:
        inbound.setdefault(edge.dst, []).append(edge)
    found: dict[str, frozenset[str]] = {}
    for step in order:
        # The order is topological, so where a writer is has been settled.
        found[step] = start.get(step, frozenset()).union(
            *(find_targets(edge, worker, workers) for edge in inbound.get(step, ()) for worker in found[edge.src])
        )
    return found
