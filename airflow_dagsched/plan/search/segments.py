"""Resident groups as runs of an order: where to cut it is found by dynamic programming.

    order   a b c d e f g h         every run fits the cluster all at once; a run takes a start, its longest step,
    runs   {a b c}{d e}{f g h}      what it reads from before and writes for behind: the sum over all runs is least

A run's cost is its time, plus the share of the cluster it holds times that time: ``weight`` says how much the time
itself counts. Much: few full runs one after another. Little: small ones that need not hold what is done. An order
decides what can be together, so several are tried. Of many steps those that pay most often are, and a run is made of
blocks, about as many whatever the cluster has: linear in steps. Of few, all are, a step at a time. See ``line``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from airflow_dagsched.model.order import levels
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.needs import padding
from airflow_dagsched.plan.orders import depth_first
from airflow_dagsched.plan.parts import cut_by
from airflow_dagsched.plan.search.line import Line, Room, Units
from airflow_dagsched.plan.work import tails

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


def segmentations(given: Given, home: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """The groups of ``home``, each cut into runs, in several ways, and the blocks that each way has looked at."""
    if len(given.graph.steps) > MANY:
        yield from _of_many(given, home)
        return
    orders = _Orders(given)
    found = (*map(orders.by_tail, LEVELS), orders.by_level(), orders.by_branch(), orders.by_path())
    yield from _all_ways(given, home, found, (Units.of(given), Room(0, 0)))


def _all_ways(
    given: Given, home: Sequence[int], orders: Sequence[list[int]], by: tuple[Units, Room]
) -> Iterator[tuple[list[int], int]]:
    """Every weight, order and share."""
    for weight in WEIGHTS:
        for order in orders:
            for share in FILLED[: len(given.work.workers)]:
                yield _cut(given, _Lines(home, order, *by), weight, share)[1:]


def _of_many(given: Given, home: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """The cheapest first; of levels even if they cost a little more, since their runs fall apart into more parts.

    Then, while the budget lasts, all ways.
    """
    units, orders = Units.of(given), _Orders(given)
    block = _room(given, min(1.0, len(given.graph.steps) / FINE) / BLOCKS)
    ways = ((orders.by_level(), PARTED), (orders.by_tail(0), 1.0))
    found = [(by, _cut(given, _Lines(home, order, units, block), WEIGHTS[0], FILLED[0])) for order, by in ways]
    for _, (_, runs, looked) in sorted(found, key=lambda one: one[0] * one[1][0]):
        yield runs, looked
    others = (orders.by_path(), orders.by_branch(), orders.by_level(), orders.by_tail(0))
    yield from _all_ways(given, home, others, (units, block))


class _Lines(NamedTuple):
    home: Sequence[int]
    order: Sequence[int]
    units: Units
    block: Room


def _cut(given: Given, lines: _Lines, weight: float, share: float) -> tuple[float, list[int], int]:
    """What the runs cost, for each node the first of its run, and the blocks looked at."""
    number, room, cost, looked = [0] * len(lines.home), _room(given, share), 0.0, 0
    for nodes in _by_home(given, lines.home, lines.order):
        found = Line.of(nodes, lines.units, lines.block).cut(given, weight, room)
        cost += found.cost
        looked += found.looked
        for at, run in enumerate(found.runs):
            for node in run:
                number[node] = at
    return cost, cut_by(given.graph, lines.home, number), looked


class _Orders:
    """Topological orders of the first nodes of loops."""

    def __init__(self, given: Given) -> None:
        self._given = given
        graph = given.graph
        self._firsts = [node for node in graph.order if graph.loop[node] == node] if graph.loops else graph.order
        self._depth = levels(graph.condensed, graph.order)
        # Those of ``work`` are of single steps: they may rise along an edge between steps that are kept together.
        self._tail = tails(graph, given.work.least) if graph.loops else given.work.tail

    def by_tail(self, fixed: int) -> list[int]:
        """Most behind it first, but for the first levels."""
        depth, tail = self._depth, self._tail
        if not fixed:
            return sorted(self._firsts, key=lambda node: -tail[node])
        return sorted(self._firsts, key=lambda node: (min(depth[node], fixed), -tail[node]))

    def by_level(self) -> list[int]:
        """Level by level, the longest first."""
        depth, runtime = self._depth, self._given.work.runtime
        return sorted(self._firsts, key=lambda node: (depth[node], -runtime[node]))

    def by_branch(self) -> list[int]:
        """What waits for each other side by side."""
        graph = self._given.graph
        return [node for node in depth_first(graph.condensed) if graph.loop[node] == node]

    def by_path(self) -> list[int]:
        """By the moment in which each could end if all ran as soon as what they wait for has ended."""
        graph, runtime = self._given.graph, self._given.work.runtime
        end = [0.0] * len(graph.ids)
        for node in self._firsts:
            last = end[node] = end[node] + runtime[node]
            for after in graph.condensed[node]:
                if last > end[after]:  # noqa: PLR1730  a call of max here costs a third of this walk
                    end[after] = last
        return sorted(self._firsts, key=end.__getitem__)


def _by_home(given: Given, home: Sequence[int], order: Sequence[int]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for node in order:
        if given.graph.is_step(node):
            found.setdefault(home[node], []).append(node)
    return list(found.values())


def _room(given: Given, share: float) -> Room:
    """This share of the cluster."""
    cores = share * sum(worker.free_cores for worker in given.work.workers)
    memory = share * sum(worker.free_memory_mb for worker in given.work.workers)
    fits = bisect_right(range(int(memory) + 1), memory, key=lambda held: held + padding(held, given.settings))
    return Room(cores, fits - 1)
