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
from collections.abc import Callable, Iterator, Sequence

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import measure_levels
from airflow_dagsched.plan.grouping.proposals.refinement import split_unjoined
from airflow_dagsched.plan.problem.partition import cut_groups, name_by_least
from airflow_dagsched.plan.problem.problem import Problem

MANY = 10_000
"""Steps; of more only one count of applications is tried, for evaluating one takes a second."""


Deal = Callable[[Problem, Sequence[Sequence[int]], int], list[list[int]]]
"""The parts of a row, by so many applications or more."""


def list_deals(problem: Problem, group_of: Sequence[int], gain_s: float) -> Iterator[list[int]]:
    """Groupings finer than ``group_of``, from few applications side by side to more.

    ``gain_s``: seconds that another grouping may end sooner than ``group_of`` at most.
    """
    few = len(problem.graph.steps) <= MANY
    for count in _list_counts(problem):
        for number in _list_numbers(problem.graph, group_of, count):
            # Each row starts behind the one before it: so many starts may take what there is to gain.
            if few or max(number) * problem.cluster.application_start_s < gain_s:
                rows = cut_groups(problem.graph, group_of, number)
                yield deal_parts(problem, rows, count, _deal_row)
                yield deal_parts(problem, rows, count, _fill_row)


def deal_parts(problem: Problem, group_of: Sequence[int], count: int, deal: Deal) -> list[int]:
    """Each group dealt to at most ``count`` ones, as many as its steps can fill with work."""
    parts = _list_parts(problem.graph, split_unjoined(problem.graph, group_of), group_of)
    dealt = list(group_of)
    for row in parts.values():
        for at, members in enumerate(deal(problem, row, _count_needed(problem, row, count))):
            # The first application keeps the row's name; the others get numbers that no node has.
            for node in members if at else ():
                dealt[node] = len(group_of) * at + group_of[node]
    return name_by_least(dealt)


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


def _count_needed(problem: Problem, row: Sequence[Sequence[int]], count: int) -> int:
    """Of ``count`` applications the share that the row can fill: it may have fewer instances than there are cores."""
    wanted = sum([_measure_width(problem, part) for part in row])
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


def _fill_row(problem: Problem, row: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """The parts of a row by application, the longest first: as many to each as leave the last one its slots' cores."""
    widths = [_measure_width(problem, part) for part in row]
    wanted, cores = sum(widths), problem.arrays.room.cores
    if count == 1 or wanted <= cores:
        return _deal_row(problem, row, count)
    last = min(wanted, problem.settings.slots * wanted // len(row))
    share, bins, filled = (cores - last) // (count - 1), [list[int]()], 0
    seconds = [_measure_work(problem, part) / width for part, width in zip(row, widths, strict=True)]
    for at in sorted(range(len(row)), key=lambda at: (-seconds[at], at)):
        if bins[-1] and len(bins) < count and filled + widths[at] > share:
            bins.append([])
            filled = 0
        bins[-1] += row[at]
        filled += widths[at]
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


def _measure_width(problem: Problem, part: Sequence[int]) -> int:
    """Cores: one step of a part at a time, the widest; a part may be a chain."""
    needs, steps = problem.arrays.needs, problem.graph.steps
    return max([needs[node].cores * steps[node].parallelism for node in part])
