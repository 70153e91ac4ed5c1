"""Groups cut further: where the author keeps steps apart, and where they are too many.

    a ══> b ══> c ══> d     at most two steps a group: {a b} and {c d}

A step goes to the first part of its group that is no earlier than the parts of what it waits for, and that
takes it. So the number of the part never falls along an edge, and since no path leaves a group and comes
back, a group cut into such a row leaves everything acyclic.
"""

from __future__ import annotations

from msgspec import Struct, field

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import reverse_edges
from airflow_dagsched.plan.problem.orders import walk_depth_first
from airflow_dagsched.plan.problem.partition import cut_groups
from airflow_dagsched.plan.problem.rules import Rules


class _Row(Struct):
    """The parts of one group so far."""

    units: list[set[int]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    first_open: int = 0
    """All parts before it are full."""

    def put_unit(self, unit: int, earliest: int, rules: Rules) -> int:
        """Number of the part that takes ``unit``."""
        at = max(earliest, self.first_open)
        while at < len(self.units) and not self._has_room(unit, at, rules):
            at += 1
        while at >= len(self.units):
            self.units.append(set())
            self.steps.append(0)
        self.units[at].add(unit)
        self.steps[at] += rules.size[unit]
        # Full parts stay full: without this, many steps would each walk over all of them.
        while self.first_open < len(self.steps) and self.steps[self.first_open] >= rules.most_steps:
            self.first_open += 1
        return at

    def _has_room(self, unit: int, at: int, rules: Rules) -> bool:
        fits = self.steps[at] + rules.size[unit] <= rules.most_steps
        return fits and self.units[at].isdisjoint(rules.apart.get(unit, ()))


def cut_to_limits(graph: Graph, rules: Rules, group_of: list[int]) -> list[int]:
    """The homes after cutting; ``group_of`` itself where nothing asks for it. Linear, but for lists of steps apart."""
    if not rules.apart and len(graph.steps) <= rules.most_steps:
        return group_of
    above = reverse_edges(graph.condensed)
    number = [0] * len(group_of)
    rows: dict[int, _Row] = {}
    # Chains stay together: taken level by level, each part would get a slice of all branches, and cut each of them.
    for node in walk_depth_first(graph.condensed):
        if graph.is_step(node) and graph.loop[node] == node:
            earliest = max([number[before] for before in above[node] if group_of[before] == group_of[node]], default=0)
            number[node] = rows.setdefault(group_of[node], _Row()).put_unit(node, earliest, rules)
    return cut_groups(graph, group_of, number)
