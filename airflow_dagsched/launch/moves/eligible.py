"""Which steps of later launch tasks one may take now: those that nothing keeps from running at once.

::

    a ──> (t) ──> c ──> e        K runs a; c, e and d are L's, and t has not ended:
    └───────────> d ────┘        only d may run beside a. It is ready, whatever c waits for.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from msgspec import Struct

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.plan.problem.rules import Rules


class Sight(Struct, frozen=True):
    """How far the run is, as one launch task sees it when it begins, or before it ends."""

    mine: frozenset[str]
    """The steps that it runs, or has run."""
    open: frozenset[str]
    """Steps of launch tasks that have not begun, that nobody has claimed, or that are offered, and whose mirrors have
    not ended."""
    done: frozenset[str]
    """Steps that ended well, or were skipped, since the last clear."""
    over: frozenset[str]
    """Ordinary tasks that are known to have ended. What is not known has not."""


def list_eligible(graph: Graph, rules: Rules, sight: Sight) -> frozenset[str]:
    """Steps that may be taken; of steps that stay together all or none."""
    above, colors = _list_above(graph), {rules.color[graph.index[step]] for step in sight.mine}
    found: set[str] = set()
    for unit in list_units(graph):
        steps = {graph.ids[node] for node in unit}
        ready = sight.mine | sight.done | sight.over | found | steps
        if steps <= sight.open and {rules.color[node] for node in unit} <= colors:
            needed = {graph.ids[up] for node in unit for up in above[node]}
            found |= steps if needed <= ready else set()
    return frozenset(found)


def add_needed(graph: Graph, steps: Iterable[str], eligible: frozenset[str]) -> frozenset[str]:
    """``steps``, and what of ``eligible`` has to run before them, with all that stays together with it."""
    above, unit_of = _list_above(graph), {node: unit for unit in list_units(graph) for node in unit}
    found: set[int] = set()
    queue = [graph.index[step] for step in steps]
    while queue:
        node = queue.pop()
        if node in found or graph.ids[node] not in eligible:
            continue
        found.add(node)
        queue += [*unit_of[node], *above[node]]
    return frozenset(graph.ids[node] for node in found)


def list_units(graph: Graph) -> list[list[int]]:
    """Steps that nothing separates, those above first; in the graph's order the steps of a loop follow each other."""
    steps = filter(graph.is_step, graph.order)
    return [[*nodes] for _, nodes in groupby(steps, key=graph.loop.__getitem__)]


def _list_above(graph: Graph) -> list[list[int]]:
    above: list[list[int]] = [[] for _ in graph.ids]
    for node, nexts in enumerate(graph.successors):
        for below in nexts:
            above[below].append(node)
    return above
