"""Groups cut further: where the author keeps steps apart, and where they are too many.

    a ══> b ══> c ══> d     at most two steps a group: {a b} and {c d}

A step goes to the first part of its group that is no earlier than the parts of what it waits for, and that
takes it. So the number of the part never falls along an edge, and since no path leaves a group and comes
back, a group cut into such a row leaves everything acyclic.
"""

from __future__ import annotations

from msgspec import Struct, field

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import predecessors
from airflow_dagsched.plan.orders import depth_first
from airflow_dagsched.plan.parts import cut_by
from airflow_dagsched.plan.rules import Rules


class _Row(Struct):
    """The parts of one group so far."""

    units: list[set[int]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    first_open: int = 0
    """All parts before it are full."""

    def put(self, unit: int, earliest: int, rules: Rules) -> int:
        """Number of the part that takes ``unit``."""
        at = max(earliest, self.first_open)
        while at < len(self.units) and not self._takes(unit, at, rules):
            at += 1
        while at >= len(self.units):
            self.units.append(set())
            self.steps.append(0)
        self.units[at].add(unit)
        self.steps[at] += rules.size[unit]
        while self.first_open < len(self.steps) and self.steps[self.first_open] >= rules.most_steps:
            self.first_open += 1
        return at

    def _takes(self, unit: int, at: int, rules: Rules) -> bool:
        fits = self.steps[at] + rules.size[unit] <= rules.most_steps
        return fits and self.units[at].isdisjoint(rules.apart.get(unit, ()))


def limited(graph: Graph, rules: Rules, home: list[int]) -> list[int]:
    """The homes after cutting; ``home`` itself where nothing asks for it. Linear, but for lists of steps apart."""
    if not rules.apart and len(graph.steps) <= rules.most_steps:
        return home
    above = predecessors(graph.condensed)
    number = [0] * len(home)
    rows: dict[int, _Row] = {}
    for node in depth_first(graph.condensed):
        if graph.is_step(node) and graph.loop[node] == node:
            earliest = max([number[before] for before in above[node] if home[before] == home[node]], default=0)
            number[node] = rows.setdefault(home[node], _Row()).put(node, earliest, rules)
    return cut_by(graph, home, number)
