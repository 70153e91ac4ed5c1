"""Siblings dealt to few applications: more slots than one application has, fewer starts than one a step.

    load ══> s1 .. s100 ══> join        {load}  {34 of s}  {33 of s}  {33 of s}  {join}

Each group is cut into rows by the depth of its steps, so that a row waits for the row before it alone. What no edge
joins within a row (a step, a chain, a branch) is dealt whole: the longest work first, each to the application that has
least (Graham 1969). No edge joins the applications of a row and none leads back to an earlier row: all stays acyclic.

Where a row wants more cores than there are, applications of equal work would wait for each other. There like is dealt
with like, too: the longest to applications that find room beside the last one, which takes the rest in its slots.

    8 cores, 4 slots     {l l l l} {s s s s s s}     l: 60 s, s: 30 s, each on 1 core
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import measure_levels
from airflow_dagsched.plan.grouping.proposals.refinement import split_unjoined
from airflow_dagsched.plan.problem.partition import cut_groups, name_by_least
from airflow_dagsched.plan.problem.problem import Problem

MANY = 10_000
"""Steps; of more only one count of applications is tried, for evaluating one takes a second."""


class _Row(NamedTuple):
    """The parts of a group that no edge joins: they may all run at once."""

    group: int
    parts: list[list[int]]
    """Steps."""
    widths: list[int]
    """Cores of each part."""
    applications: int
    """To so many it is dealt."""

    @classmethod
    def of(cls, problem: Problem, group: int, parts: list[list[int]], most: int) -> _Row:
        """Dealt to at most so many applications, as many as its steps can fill with work."""
        widths = [_measure_width(problem, part) for part in parts]
        share = math.ceil(most * sum(widths) / max(1, problem.arrays.room.cores))
        return cls(group, parts, widths, min(len(parts), most, max(1, share)))

    def is_crowded(self, problem: Problem) -> bool:
        """Whether several applications of it would wait for each other's cores."""
        wanted = min(sum(self.widths), self.applications * self.sum_in_slots(problem))
        return self.applications > 1 and wanted > problem.arrays.room.cores

    def sum_in_slots(self, problem: Problem) -> int:
        """Cores of as many parts as one application has slots, on average; of all if they are fewer."""
        wanted = sum(self.widths)
        return min(wanted, problem.settings.slots * wanted // len(self.parts))


def list_deals(problem: Problem, group_of: Sequence[int], gain_s: float) -> Iterator[list[int]]:
    """Groupings finer than ``group_of``, from few applications side by side to more; where it obeys the rules, so do
    they, for what may share a group may do so with fewer others.

    ``gain_s``: seconds that another grouping may end sooner than ``group_of`` at most.
    """
    if tuple(group_of) == problem.graph.loop:
        return  # No group has two parts.
    few = len(problem.graph.steps) <= MANY
    for count in _list_counts(problem):
        for number in _list_numbers(problem.graph, group_of, count):
            # Each row starts behind the one before it: so many starts may take what there is to gain.
            if few or max(number) * problem.cluster.application_start_s < gain_s:
                yield from _deal_groups(problem, cut_groups(problem.graph, group_of, number), count)


def _deal_groups(problem: Problem, group_of: Sequence[int], count: int) -> Iterator[list[int]]:
    """Each group dealt to ``count`` applications: all alike; and, where some are crowded, like with like in these."""
    parts = _list_parts(problem.graph, split_unjoined(problem.graph, group_of), group_of)
    rows = [_Row.of(problem, group, found, count) for group, found in parts.items()]
    dealt = [_deal_alike(problem, row) for row in rows]
    yield _name_applications(group_of, rows, dealt)
    crowded = [at for at, row in enumerate(rows) if row.is_crowded(problem)]
    for at in crowded:
        dealt[at] = _deal_by_length(problem, rows[at])
    if crowded:
        yield _name_applications(group_of, rows, dealt)


def _name_applications(
    group_of: Sequence[int], rows: Sequence[_Row], dealt: Sequence[Sequence[Sequence[int]]]
) -> list[int]:
    """The group of each node, for the steps of each application of each row."""
    found = list(group_of)
    for row, applications in zip(rows, dealt, strict=True):
        # The first application keeps the row's name; the others get numbers that no node has.
        for at, steps in enumerate(applications[1:], start=1):
            for node in steps:
                found[node] = len(group_of) * at + row.group
    return name_by_least(found)


def _list_counts(problem: Problem) -> list[int]:
    """How many applications side by side are worth a try: as many as slots of each leave no core idle, and more."""
    steps = problem.graph.steps
    # A slot is of a step, which takes the cores of all its instances: of wide steps few slots are enough.
    wanted = [need.cores * step.parallelism for need, step in zip(problem.arrays.needs, steps, strict=False)] or [1]
    least, most = (_count_filling(problem, cores) for cores in (sum(wanted) // len(wanted), min(wanted)))
    if len(steps) > MANY:
        return sorted({least, most})
    # One a worker: wide instances leave cores of a worker over that another application can use.
    return sorted({least, least + 1, 2 * least, most, max(least, len(problem.arrays.workers))})


def _count_filling(problem: Problem, cores: int) -> int:
    """Applications whose slots fill all cores, if each slot takes so many ``cores``; at least two."""
    return max(2, math.ceil(problem.arrays.room.cores / (problem.settings.slots * cores)))


def _list_numbers(graph: Graph, group_of: Sequence[int], count: int) -> Iterator[list[int]]:
    """Numbers to cut groups by, none of which falls along an edge inside a group."""
    whole = [0] * len(group_of)
    yield whole
    level = _measure_depths(graph, group_of)
    runs = _number_runs(graph, group_of, level, count)
    if runs != whole:
        yield runs
    if level not in (whole, runs):
        yield level


def _measure_depths(graph: Graph, group_of: Sequence[int]) -> list[int]:
    """Steps before each in its group, on the longest path."""
    inside = [
        [after for after in nexts if group_of[after] == group_of[node]] for node, nexts in enumerate(graph.condensed)
    ]
    level = measure_levels(inside, graph.order)
    return [level[first] for first in graph.loop]


def _number_runs(graph: Graph, group_of: Sequence[int], level: Sequence[int], count: int) -> list[int]:
    """The depths, with neighbouring ones that are all wide, or all narrow, as one: chains stay whole."""
    width: dict[tuple[int, int], int] = {}
    for node, first in enumerate(graph.loop):
        if node == first:
            key = group_of[node], level[node]
            width[key] = width.get(key, 0) + 1
    run: dict[tuple[int, int], int] = {}
    for group, depth in sorted(width):
        before = (group, depth - 1)
        is_turn = before in width and (width[before] >= count) != (width[group, depth] >= count)
        run[group, depth] = run.get(before, 0) + is_turn
    return [run[group_of[first], level[first]] for first in graph.loop]


def _list_parts(graph: Graph, parts: Sequence[int], group_of: Sequence[int]) -> dict[int, list[list[int]]]:
    """By group its parts that no edge joins, each with its steps."""
    members: dict[int, list[int]] = {}
    for node, part in enumerate(parts[: len(graph.steps)]):
        members.setdefault(part, []).append(node)
    found: dict[int, list[list[int]]] = {}
    for part, nodes in members.items():
        found.setdefault(group_of[part], []).append(nodes)
    return found


def _deal_alike(problem: Problem, row: _Row) -> list[list[int]]:
    """The parts by application: the longest first, each to that with the least work."""
    if row.applications == 1:
        return [[node for part in row.parts for node in part]]
    work = [_measure_work(problem, part) for part in row.parts]
    bins: list[list[int]] = [[] for _ in range(row.applications)]
    loads = [(0.0, at) for at in range(row.applications)]
    for at in sorted(range(len(work)), key=lambda at: (-work[at], at)):
        load, to = loads[0]
        bins[to] += row.parts[at]
        heapq.heapreplace(loads, (load + work[at], to))
    return bins


def _deal_by_length(problem: Problem, row: _Row) -> list[list[int]]:
    """The parts by application, the longest first: as many to each as leave the last one its slots' cores."""
    share = (problem.arrays.room.cores - row.sum_in_slots(problem)) // (row.applications - 1)
    bins, filled = [list[int]()], 0
    seconds = [_measure_work(problem, part) / width for part, width in zip(row.parts, row.widths, strict=True)]
    for at in sorted(range(len(seconds)), key=lambda at: (-seconds[at], at)):
        if bins[-1] and len(bins) < row.applications and filled + row.widths[at] > share:
            bins.append([])
            filled = 0
        bins[-1] += row.parts[at]
        filled += row.widths[at]
    return bins


def _measure_work(problem: Problem, part: Sequence[int]) -> float:
    """Core-seconds."""
    arrays, steps = problem.arrays, problem.graph.steps
    return sum([arrays.needs[node].cores * steps[node].parallelism * arrays.runtime_s[node] for node in part])


def _measure_width(problem: Problem, part: Sequence[int]) -> int:
    """Cores: one step of a part at a time, the widest; a part may be a chain."""
    needs, steps = problem.arrays.needs, problem.graph.steps
    return max([needs[node].cores * steps[node].parallelism for node in part])
