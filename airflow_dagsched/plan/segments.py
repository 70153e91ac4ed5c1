"""Resident groups as runs of an order: where to cut it is found by dynamic programming.

    order   a b c d e f g h         every run fits the cluster all at once; a run takes a start, its longest step,
    runs   {a b c}{d e}{f g h}      what it reads from before and writes for behind: the sum over all runs is least

A run's cost is its time, plus the share of the cluster it holds times that time: ``weight`` says how much the time
itself counts. Much: few full runs one after another. Little: small ones that need not hold what is done. An order
decides what can be together, so several are tried. Linear in steps, times the steps of a run.

Optimal segmentation of a topological order (Kernighan 1971), with datasets counted once as in hypergraph partitioning.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from airflow_dagsched.model.order import levels
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.line import Line, Room, Units
from airflow_dagsched.plan.needs import padding
from airflow_dagsched.plan.orders import depth_first
from airflow_dagsched.plan.parts import cut_by
from airflow_dagsched.plan.work import tails

WEIGHTS = (2.0, 0.5, 0.1)
FILLED = (1.0, 0.75)
"""Shares of the cluster that a run may hold: containers on several workers leave gaps."""
EXACT = 200
BLOCKS = 16
LEVELS = range(4)
"""So many levels come first whole, before the longest tails of all that is left."""


def segmentations(given: Given, home: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """The groups of ``home``, each cut into runs, in several ways, and the units that each way has looked at."""
    units = Units.of(given)
    filled = FILLED[: len(given.work.workers)]
    for weight in WEIGHTS:
        for order in _orders(given):
            for share in filled:
                number, looked = [0] * len(home), 0
                room = _room(given, share)
                for nodes in _by_home(given, home, order):
                    line = Line.of(nodes, units, given, _block(given))
                    runs, count = line.cut(given, weight, room)
                    looked += count
                    for at, run in enumerate(runs):
                        for node in run:
                            number[node] = at
                yield cut_by(given.graph, home, number), looked


def _orders(given: Given) -> Iterator[list[int]]:
    """Topological orders of the first nodes of loops."""
    graph, work = given.graph, given.work
    firsts = [node for node in graph.order if graph.loop[node] == node]
    depth = levels(graph.condensed, graph.order)
    # Those of ``work`` are of single steps: they may rise along an edge between steps that are kept together.
    tail = tails(graph, work.least)
    for fixed in LEVELS:
        yield sorted(firsts, key=lambda node, fixed=fixed: (min(depth[node], fixed), -tail[node]))  # type: ignore[misc]
    yield sorted(firsts, key=lambda node: (depth[node], -work.runtime[node]))
    yield [node for node in depth_first(graph.condensed) if graph.loop[node] == node]
    head = [0.0] * len(graph.ids)
    for node in firsts:
        for after in graph.condensed[node]:
            head[after] = max(head[after], head[node] + work.runtime[node])
    yield sorted(firsts, key=lambda node: head[node] + work.runtime[node])


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


def _block(given: Given) -> Room:
    return Room(0, 0) if len(given.graph.steps) <= EXACT else _room(given, 1 / BLOCKS)
