"""Resident groups as runs of an order: where to cut it is found by dynamic programming.

    order   a b c d e f g h         every run fits the cluster all at once; a run takes a start, its longest step,
    runs   {a b c}{d e}{f g h}      what it reads from before and writes for behind: the sum over all runs is least

A run's cost is its time, plus the share of the cluster it holds times that time: ``weight`` says how much the time
itself counts. Much: few full runs one after another. Little: small ones that need not hold what is done. An order
decides what can be together, so several are tried. Of many steps those that pay most often are, and a run is made of
blocks, as many whatever the cluster has: linear in steps. Of few, all are, a step at a time. See ``segmentation``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from airflow_dagsched.model.order import measure_levels
from airflow_dagsched.plan.needs import measure_padding
from airflow_dagsched.plan.problem.orders import walk_depth_first
from airflow_dagsched.plan.problem.partition import cut_groups
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.step_arrays import measure_step_tails
from airflow_dagsched.plan.resident.segmentation import Line, RunLimit, Units

WEIGHTS = (2.0, 0.5, 0.1)
FILLED = (1.0, 0.75)
"""Shares of the cluster that a run may hold: containers on several workers leave gaps."""
LEVELS = range(4)
"""So many levels come first whole, before the longest tails of all that is left."""
MANY = 200
"""Steps; of more, not all ways are tried."""
BLOCKS = 16
"""Blocks that fill the cluster, of so many steps or more:"""
FINE = 1_000
"""of fewer, the blocks are smaller, too."""
PARTED = 0.95
"""What runs by levels count for: their parts can run side by side."""


def list_segmentations(problem: Problem, group_of: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """The groups of ``group_of``, each cut into runs, in several ways, and the blocks that each way has looked at."""
    if len(problem.graph.steps) > MANY:
        yield from _try_few_ways(problem, group_of)
        return
    orders = _Orders(problem)
    found = (*map(orders.sort_by_tail, LEVELS), orders.sort_by_level(), orders.sort_by_branch(), orders.sort_by_path())
    yield from _try_all_ways(problem, group_of, found, (Units.of(problem), RunLimit(0, 0)))


def _try_all_ways(
    problem: Problem, group_of: Sequence[int], orders: Sequence[list[int]], by: tuple[Units, RunLimit]
) -> Iterator[tuple[list[int], int]]:
    """Every weight, order and share."""
    for weight in WEIGHTS:
        for order in orders:
            # Gaps come of several workers: on one a run may fill all there is.
            for share in FILLED[: len(problem.arrays.workers)]:
                yield _cut_groups(problem, _Lines(group_of, order, *by), weight, share)[1:]


def _try_few_ways(problem: Problem, group_of: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """The cheapest first; of levels even if they cost a little more, since their runs fall apart into more parts.

    Then, while the budget lasts, all ways.
    """
    units, orders = Units.of(problem), _Orders(problem)
    block = share_cluster(problem, min(1.0, len(problem.graph.steps) / FINE) / BLOCKS)
    ways = ((orders.sort_by_level(), PARTED), (orders.sort_by_tail(0), 1.0))
    found = [
        (by, _cut_groups(problem, _Lines(group_of, order, units, block), WEIGHTS[0], FILLED[0])) for order, by in ways
    ]
    # The cheaper first: of many steps the budget may end behind it.
    for _, (_, runs, looked) in sorted(found, key=lambda one: one[0] * one[1][0]):
        yield runs, looked
    others = (orders.sort_by_path(), orders.sort_by_branch(), orders.sort_by_level(), orders.sort_by_tail(0))
    yield from _try_all_ways(problem, group_of, others, (units, block))


class _Lines(NamedTuple):
    group_of: Sequence[int]
    order: Sequence[int]
    units: Units
    block: RunLimit


def _cut_groups(problem: Problem, lines: _Lines, weight: float, share: float) -> tuple[float, list[int], int]:
    """What the runs cost, for each node the first of its run, and the blocks looked at."""
    number, room, cost, looked = [0] * len(lines.group_of), share_cluster(problem, share), 0.0, 0
    for nodes in _split_by_group(problem, lines.group_of, lines.order):
        found = Line.of(nodes, lines.units, lines.block).cut_runs(problem, weight, room)
        cost += found.cost
        looked += found.looked
        for at, run in enumerate(found.runs):
            for node in run:
                number[node] = at
    return cost, cut_groups(problem.graph, lines.group_of, number), looked


class _Orders:
    """Topological orders of the first nodes of loops."""

    def __init__(self, problem: Problem) -> None:
        self._given = problem
        graph = problem.graph
        self._firsts = [node for node in graph.order if graph.loop[node] == node] if graph.has_loops else graph.order
        self._depth = measure_levels(graph.condensed, graph.order)
        # Those of the arrays are of single steps: they may rise along an edge between steps that are kept together.
        self._tail = measure_step_tails(graph, problem.arrays.least_s) if graph.has_loops else problem.arrays.tail_s

    def sort_by_tail(self, fixed: int) -> list[int]:
        """Most behind it first, but for the first levels."""
        depth, tail = self._depth, self._tail
        if not fixed:
            return sorted(self._firsts, key=lambda node: -tail[node])
        return sorted(self._firsts, key=lambda node: (min(depth[node], fixed), -tail[node]))

    def sort_by_level(self) -> list[int]:
        """Level by level, the longest first."""
        depth, runtime = self._depth, self._given.arrays.runtime_s
        return sorted(self._firsts, key=lambda node: (depth[node], -runtime[node]))

    def sort_by_branch(self) -> list[int]:
        """What waits for each other side by side."""
        graph = self._given.graph
        return [node for node in walk_depth_first(graph.condensed) if graph.loop[node] == node]

    def sort_by_path(self) -> list[int]:
        """By the moment in which each could end if all ran as soon as what they wait for has ended."""
        graph, runtime = self._given.graph, self._given.arrays.runtime_s
        end = [0.0] * len(graph.ids)
        for node in self._firsts:
            last = end[node] = end[node] + runtime[node]
            for after in graph.condensed[node]:
                if last > end[after]:  # noqa: PLR1730  a call of max here costs a third of this walk
                    end[after] = last
        return sorted(self._firsts, key=end.__getitem__)


def _split_by_group(problem: Problem, group_of: Sequence[int], order: Sequence[int]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for node in order:
        if problem.graph.is_step(node):
            found.setdefault(group_of[node], []).append(node)
    return list(found.values())


def share_cluster(problem: Problem, share: float) -> RunLimit:
    """This share of the cluster."""
    cores = share * problem.arrays.room.cores
    memory = share * problem.arrays.room.memory_mb
    # The most that fits with its padding: rounded up, the padding has no exact inverse.
    fits = bisect_right(range(int(memory) + 1), memory, key=lambda held: held + measure_padding(held, problem.settings))
    return RunLimit(cores, fits - 1)
