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
from dataclasses import dataclass

from airflow_dagsched.model.order import levels
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.needs import padding
from airflow_dagsched.plan.orders import depth_first
from airflow_dagsched.plan.parts import cut_by
from airflow_dagsched.plan.work import MIB, tails

WEIGHTS = (2.0, 0.5, 0.1)
FILLED = (1.0, 0.75)
"""Shares of the cluster that a run may hold: containers on several workers leave gaps."""
LEVELS = range(4)
"""So many levels come first whole, before the longest tails of all that is left."""


def segmentations(given: Given, home: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """The groups of ``home``, each cut into runs, in several ways, and the units that each way has looked at."""
    lines = _Lines(given)
    filled = FILLED[: len(given.work.workers)]
    for weight in WEIGHTS:
        for order in _orders(given):
            for share in filled:
                number = [0] * len(home)
                before = lines.looked
                for nodes in _by_home(given, home, order):
                    for at, run in enumerate(lines.cut(nodes, weight, share)):
                        for node in run:
                            number[node] = at
                yield cut_by(given.graph, home, number), lines.looked - before


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


@dataclass(frozen=True, slots=True)
class _Room:
    """What a run may hold."""

    cores: float
    memory_mb: int
    """Without padding."""


class _Lines:
    """What every cut of a line of units needs to know of them."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self.looked = 0
        """Units by which runs have grown so far."""
        graph, work = given.graph, given.work
        count = len(graph.ids)
        self._longest, self._cores, self._memory = [0.0] * count, [0] * count, [0] * count
        for node, step in enumerate(graph.steps):
            first = graph.loop[node]
            self._longest[first] = max(self._longest[first], work.runtime[node])
            self._cores[first] += work.needs[node].cores * step.parallelism
            self._memory[first] += work.needs[node].memory_mb * step.parallelism
        self._reads: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self._writes: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for at, dataset in enumerate(graph.datasets):
            self._writes[graph.loop[dataset.src]].append((at, dataset.bytes))
            for reader in {graph.loop[reader] for reader in dataset.readers} - {graph.loop[dataset.src]}:
                self._reads[reader].append((at, dataset.bytes))

    def cut(self, nodes: Sequence[int], weight: float, share: float) -> list[list[int]]:
        """The runs of ``nodes``; one unit is a run even if it does not fit."""
        best, first = [0.0], [0]
        place = {node: at for at, node in enumerate(nodes)}
        last = [self._last_readers(node, place) for node in nodes]
        room = self._room(share)
        for end in range(len(nodes)):
            found, where, looked = self._cheapest(nodes, last, best, end, (weight, room))
            self.looked += looked
            best.append(found)
            first.append(where)
        return _runs(nodes, first)

    def _room(self, share: float) -> _Room:
        given = self._given
        cores = share * sum(worker.free_cores for worker in given.work.workers)
        memory = share * sum(worker.free_memory_mb for worker in given.work.workers)
        fits = bisect_right(range(int(memory) + 1), memory, key=lambda held: held + padding(held, given.settings))
        return _Room(cores, fits - 1)

    def _last_readers(self, node: int, place: dict[int, int]) -> list[tuple[int, int, int]]:
        """For each dataset it writes the place of the last unit that reads it, those of other groups behind all."""
        graph = self._given.graph
        return [
            (at, max(place.get(graph.loop[reader], len(place)) for reader in graph.datasets[at].readers), size)
            for at, size in self._writes[node]
        ]

    def _cheapest(
        self,
        nodes: Sequence[int],
        last: Sequence[Sequence[tuple[int, int, int]]],
        best: Sequence[float],
        end: int,
        limits: tuple[float, _Room],
    ) -> tuple[float, int, int]:
        """Cost of the best cut up to ``end``, where its last run begins, and the units looked at.

        The run grows to the front; what a unit writes is no longer read from before it, and is written if it is
        read behind ``end``. One loop on plain numbers: it goes over every unit of every run.
        """
        (weight, room), cluster = limits, self._given.cluster
        start, rate, wide = cluster.application_start_s, cluster.spill_mb_s * MIB, max(1.0, room.cores)
        longest, cores, memory, moved, reading = 0.0, 0, 0, 0, set[int]()
        found, where = float("inf"), end
        for at in range(end, -1, -1):
            node = nodes[at]
            cores += self._cores[node]
            memory += self._memory[node]
            if at < end and (cores > room.cores or memory > room.memory_mb):
                break
            if self._longest[node] > longest:  # noqa: PLR1730  a call of max here costs a tenth of the loop
                longest = self._longest[node]
            for dataset, size in self._reads[node]:
                if dataset not in reading:
                    reading.add(dataset)
                    moved += size
            for dataset, behind, size in last[at]:
                if dataset in reading:
                    reading.discard(dataset)
                    moved -= size
                if behind > end:
                    moved += size
            cost = best[at] + (start + longest + moved / rate) * (weight + cores / wide)
            if cost < found:
                found, where = cost, at
        return found, where, end - at + 1


def _runs(nodes: Sequence[int], first: Sequence[int]) -> list[list[int]]:
    """From where the last run of each prefix begins."""
    runs: list[list[int]] = []
    end = len(nodes)
    while end:
        runs.append(list(nodes[first[end] : end]))
        end = first[end]
    return runs[::-1]
