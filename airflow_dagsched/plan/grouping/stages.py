"""Stages: how a knot that cannot be one group is cut, without cycles and with few spills.

    a ══> b ══> e      a ──> (t) ──> e: t stands between, so e is one stage above a.
          d ══> e      Going down, every step gets the least stage it can have: a b d | e, two spills.
                       Coming back up, a step moves to the stage of its readers where that spills no more
                       (bytes, then channels): a | b d e, one spill.

Guarantee. Along an edge the stage never falls, and it rises from an ordinary task to a step and where the
color changes: so groups (knot, stage, color) and tasks are acyclic, however the second walk decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import Successors, sort_topologically
from airflow_dagsched.plan.problem.colors import TASK

NOBODY = -1


class Stages(Struct, frozen=True):
    """For each node: the knot it is in, the stage there, its color, and who it had to wait for."""

    knot: Sequence[int]
    level: Sequence[int]
    """All zero in a knot that stays whole."""
    color: Sequence[int]
    blame: Sequence[int]
    """The ordinary task, or step of another color, right below the node's stage; -1: the lowest stage."""
    cut: frozenset[int]
    """The knots that had to be cut in stages."""


def find_stages(graph: Graph, color: Sequence[int], knot: Sequence[int]) -> Stages:
    """The stages of all nodes of ``graph``, whose nodes have these colors and knots."""
    cut = _find_cut_knots(color, knot)
    level, blame = [0] * len(knot), [NOBODY] * len(knot)
    if cut:
        inside, order = _list_edges_inside(graph, knot, cut)
        _go_down(inside, order, color, level, blame)
        _come_up(inside, order, color, level, blame, _Ties.of(graph, color))
    first = graph.loop
    return Stages(knot, [level[of] for of in first], color, [blame[of] for of in first], cut)


def _find_cut_knots(color: Sequence[int], knot: Sequence[int]) -> frozenset[int]:
    """Knots with an ordinary task (it has a color of its own), or with steps of several colors."""
    first: dict[int, int] = {}
    return frozenset([of for of, one in zip(knot, color, strict=True) if first.setdefault(of, one) != one])


def _list_edges_inside(graph: Graph, knot: Sequence[int], cut: frozenset[int]) -> tuple[Successors, Sequence[int]]:
    """The edges within the knots to cut, loops drawn together; and an order of the nodes along them."""
    if len(set(knot)) == 1:  # one knot of all: nothing to leave out
        return graph.condensed, graph.order
    inside = [
        [after for after in nexts if knot[after] == knot[node]] if knot[node] in cut else []
        for node, nexts in enumerate(graph.condensed)
    ]
    return inside, sort_topologically(inside)


def _go_down(
    inside: Successors, order: Sequence[int], color: Sequence[int], level: list[int], blame: list[int]
) -> None:
    """Least levels."""
    for node in order:
        here, same = level[node], (TASK, color[node])  # behind a node of another color the level rises
        for after in inside[node]:
            least = here if color[after] in same else here + 1
            if least > level[after]:
                level[after] = least
                # Handed down along a stage: whoever is asked names what stands right below, not the step before it.
                blame[after] = node if least > here else blame[node]


class _Ties(Struct, frozen=True):
    """Pipelined channels of one color above and below each node: (the other end, bytes)."""

    above: dict[int, list[tuple[int, int]]]
    below: dict[int, list[tuple[int, int]]]

    @classmethod
    def of(cls, graph: Graph, color: Sequence[int]) -> _Ties:
        ties = cls({}, {})
        for dataset in graph.datasets:
            before = graph.loop[dataset.src]
            for reader in dataset.pipelined:
                after = graph.loop[reader]
                if color[before] == color[after] and before != after:
                    ties.above.setdefault(after, []).append((before, dataset.bytes))
                    ties.below.setdefault(before, []).append((after, dataset.bytes))
        return ties


def _come_up(
    inside: Successors, order: Sequence[int], color: Sequence[int], level: list[int], blame: list[int], ties: _Ties
) -> None:
    """Move up what then spills less, or as little: what is above it can follow."""
    # From the last on: what moves up lets those above it follow in the same walk.
    for node in reversed(order):
        same = TASK, color[node]
        # An edge to another color must rise, so it ends one stage above.
        ceilings = [level[after] if color[after] in same else level[after] - 1 for after in inside[node]]
        ceiling = min(ceilings, default=level[node])
        if ceiling <= level[node]:
            continue
        joined = [tie for tie in ties.below.get(node, []) if level[tie[0]] == ceiling]
        parted = [tie for tie in ties.above.get(node, []) if level[tie[0]] == level[node]]
        # A task spills nothing: as late as it can be, it keeps nobody below it.
        if color[node] == TASK:
            level[node] = ceiling
        elif joined and _weigh_ties(joined) >= _weigh_ties(parted):
            level[node], blame[node] = ceiling, blame[joined[0][0]]


def _weigh_ties(ties: list[tuple[int, int]]) -> tuple[int, int]:
    return sum(size for _, size in ties), len(ties)
