"""Siblings dealt to few applications: more slots than one application has, fewer starts than one a step.

    load ══> s1 .. s100 ══> join        {load}  {34 of s}  {33 of s}  {33 of s}  {join}

Each group is cut into rows by the depth of its steps, so that a row waits for the row before it alone. What no edge
joins within a row (a step, a chain, a branch) is dealt whole: the longest work first, each to the application that has
least (Graham 1969). No edge joins the applications of a row and none leads back to an earlier row: all stays acyclic.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import measure_levels
from airflow_dagsched.plan.grouping.proposals.refinement import split_unjoined
from airflow_dagsched.plan.problem.partition import cut_groups, name_by_least
from airflow_dagsched.plan.problem.problem import Problem

MANY = 10_000
"""Steps; of more only one count of applications is tried, for evaluating one takes a second."""


def list_deals(problem: Problem, group_of: Sequence[int], gain_s: float) -> Iterator[list[int]]:
    """Groupings finer than ``group_of``, from few applications side by side to more.

    ``gain_s``: seconds that another grouping may end sooner than ``group_of`` at most.
    """
    few = len(problem.graph.steps) <= MANY
    for count in _list_counts(problem):
        for number in _list_numbers(problem.graph, group_of, count):
            # Each row starts behind the one before it: so many starts may take what there is to gain.
            if few or max(number) * problem.cluster.application_start_s < gain_s:
                yield deal_parts(problem, cut_groups(problem.graph, group_of, number), count)


def deal_parts(problem: Problem, group_of: Sequence[int], count: int) -> list[int]:
    """Each group dealt to at most ``count`` ones, as many as its steps can fill with work."""
    parts = _list_parts(problem.graph, split_unjoined(problem.graph, group_of), group_of)
    dealt = list(group_of)
    for row in parts.values():
        for at, members in enumerate(_deal_row(problem, row, _count_needed(problem, row, count))):
            # The first application keeps the row's name; the others get numbers that no node has.
            for node in members if at else ():
                dealt[node] = len(group_of) * at + group_of[node]
    return name_by_least(dealt)


def _list_counts(problem: Problem) -> list[int]:
    """How many applications side by side are worth a try: as many as slots of each leave no core idle, and more."""
    narrowest = min((need.cores for need in problem.arrays.needs), default=1)
    least = max(2, math.ceil(problem.arrays.room.cores / (problem.settings.slots * narrowest)))
    if len(problem.graph.steps) > MANY:
        return [least]
    # One a worker: wide instances leave cores of a worker over that another application can use.
    return sorted({least, least + 1, 2 * least, max(least, len(problem.arrays.workers))})


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


def _count_needed(problem: Problem, row: Sequence[Sequence[int]], count: int) -> int:
    """Of ``count`` applications the share that the row can fill: it may have fewer instances than there are cores."""
    arrays, steps = problem.arrays, problem.graph.steps
    # One step of a part at a time, the widest: a part may be a chain.
    wanted = sum([max([arrays.needs[node].cores * steps[node].parallelism for node in part]) for part in row])
    return min(len(row), count, max(1, math.ceil(count * wanted / max(1, problem.arrays.room.cores))))


def _deal_row(problem: Problem, row: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """The parts of a row by application: the longest first, each to that with the least work that may take it."""
    if count == 1:
        return [[node for part in row for node in part]]
    work = [_measure_work(problem, part) for part in row]
    bins: list[list[int]] = [[] for _ in range(count)]
    free = [(0.0, at) for at in range(count)]
    for at in sorted(range(len(row)), key=lambda at: (-work[at], at)):
        load, to = _take_bin(problem, free, bins, row[at])
        bins[to] += row[at]
        heapq.heappush(free, (load + work[at], to))
    return bins


def _take_bin(
    problem: Problem, free: list[tuple[float, int]], bins: list[list[int]], part: Sequence[int]
) -> tuple[float, int]:
    """The application with the least work of those that may take the part, off the heap; a new one where none may."""
    passed, found = [], None
    while free and found is None:
        load, at = heapq.heappop(free)
        if problem.rules.may_join(bins[at], part, problem.graph.loop):
            found = load, at
        else:
            passed.append((load, at))
    for one in passed:
        heapq.heappush(free, one)
    if found is None:
        bins.append([])
        found = 0.0, len(bins) - 1
    return found


def _measure_work(problem: Problem, part: Sequence[int]) -> float:
    """Core-seconds."""
    arrays, steps = problem.arrays, problem.graph.steps
    return sum([arrays.needs[node].cores * steps[node].parallelism * arrays.runtime_s[node] for node in part])
