"""A line of units cut into runs, at the least cost, by dynamic programming.

    units    a b c d e f g h        a run takes a start, its longest unit, what it reads from before it and writes
    blocks   ab  c  de  f  gh       for behind it, and holds its cores all that time
    runs     {a b c}{d e f}{g h}

A run grows to the front, a block at a time. What the growth moves is kept as a number for each block: what it reads
from before it, plus what it writes for behind the run, less what it hands to the blocks behind it in the run. As
the end of the runs moves on, only the numbers of blocks that hand to the new one change: each channel is looked at
once, whatever the lengths of runs.

Optimal segmentation of a topological order (Kernighan 1971), with datasets counted once as in hypergraph partitioning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.problem.problem import Problem

OUTSIDE = -1


class RunLimit(NamedTuple):
    """What a run may hold."""

    cores: float
    memory_mb: int
    """Without padding."""


class Runs(NamedTuple):
    """A line cut into runs."""

    cost: float
    runs: list[Sequence[int]]
    looked: int
    """Blocks that have been looked at."""


class Units(Struct, frozen=True):
    """What every line needs to know of units, by their first steps."""

    longest: Sequence[float]
    """Seconds of the longest step."""
    cores: Sequence[int]
    memory_mb: Sequence[int]
    reads: Sequence[Sequence[int]]
    """Datasets, by number, that others write."""
    written: Sequence[Sequence[int]]
    """Datasets that others read."""
    datasets: Sequence[tuple[int, int, tuple[int, ...]]]
    """Of each the bytes, the writer, and the others that read it."""

    @classmethod
    def of(cls, problem: Problem) -> Units:
        """Sum up the steps of each unit, and number the datasets between units."""
        graph, arrays = problem.graph, problem.arrays
        size, loop = len(graph.ids), graph.loop
        longest, cores, memory = [0.0] * size, [0] * size, [0] * size
        for node, step in enumerate(graph.steps):
            first, need = loop[node], arrays.needs[node]
            longest[first] = max(longest[first], arrays.runtime_s[node])
            cores[first] += need.cores * step.parallelism
            memory[first] += need.memory_mb * step.parallelism
        reads: list[list[int]] = [[] for _ in range(size)]
        written: list[list[int]] = [[] for _ in range(size)]
        datasets = [one for one in _list_between_units(problem) if one[0] and one[2]]
        for at, (_, src, readers) in enumerate(datasets):
            written[src].append(at)
            for reader in readers:
                reads[reader].append(at)
        return cls(longest, cores, memory, reads, written, datasets)


def _list_between_units(problem: Problem) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    graph = problem.graph
    loop = graph.loop
    for dataset in graph.datasets:
        src = loop[dataset.src]
        if graph.has_loops:
            yield dataset.bytes, src, tuple({loop[reader] for reader in dataset.readers} - {src})
        else:
            yield dataset.bytes, src, tuple([reader for reader in dataset.readers if reader != src])


class Line(Struct, frozen=True):
    """Units in an order, and the blocks of them that are never parted."""

    nodes: Sequence[int]
    begins: Sequence[int]
    """Where each block begins, and at last the number of units."""
    longest: Sequence[float]
    """By block."""
    cores: Sequence[int]
    """Of all blocks before each, and of all."""
    memory_mb: Sequence[int]
    moved: Sequence[int]
    """By block: bytes it reads from blocks before it and writes for those behind it."""
    handed: Sequence[Sequence[tuple[int, int]]]
    """By block: the blocks before it, and by how many bytes those move less once it is in their run."""

    @classmethod
    def of(cls, nodes: Sequence[int], units: Units, most: RunLimit) -> Line:
        """``most``: what a block of several units may hold."""
        begins = _find_blocks(nodes, units, most)
        longest, cores, memory = [], [0], [0]
        for first, end in pairwise(begins):
            part = nodes[first:end]
            longest.append(max([units.longest[node] for node in part]))
            cores.append(cores[-1] + sum([units.cores[node] for node in part]))
            memory.append(memory[-1] + sum([units.memory_mb[node] for node in part]))
        moved, handed = _measure_traffic(nodes, begins, units)
        return cls(nodes, begins, longest, cores, memory, moved, handed)

    def cut_runs(self, problem: Problem, weight: float, room: RunLimit) -> Runs:
        """The cheapest runs; one block is a run even if it does not fit."""
        best, first, looked = [0.0], list[int](), 0
        moved, low = list(self.moved), 0
        for end in range(len(moved)):
            for block, less in self.handed[end]:
                # What an earlier block moves less once this one is in its run.
                moved[block] -= less
            # It only grows: a run that does not fit with this end does not fit with a later one.
            while low < end and not self._has_room(low, end, room):
                low += 1
            cost, where = self._find_cheapest((low, end), moved, best, (weight, max(1.0, room.cores)), problem)
            best.append(cost)
            first.append(where)
            looked += end - low + 1
        return Runs(best[-1], _list_runs(self.nodes, self.begins, first), looked)

    def _has_room(self, low: int, end: int, room: RunLimit) -> bool:
        cores, memory = self.cores, self.memory_mb
        return cores[end + 1] - cores[low] <= room.cores and memory[end + 1] - memory[low] <= room.memory_mb

    def _find_cheapest(
        self,
        span: tuple[int, int],
        moved: Sequence[int],
        best: Sequence[float],
        by: tuple[float, float],
        problem: Problem,
    ) -> tuple[float, int]:
        """Cost of the best cut up to the end of ``span``, and where its last run begins. One loop on plain numbers."""
        (low, end), (weight, wide) = span, by
        start, rate = problem.cluster.application_start_s, problem.cluster.spill_mb_s * MIB
        before, seconds = self.cores, self.longest
        upto = before[end + 1]
        longest, size, found, where = 0.0, 0, float("inf"), end
        for at in range(end, low - 1, -1):
            size += moved[at]
            if seconds[at] > longest:  # noqa: PLR1730  a call of max here costs a tenth of the loop
                longest = seconds[at]
            # Kept flat, with sums carried along: this line runs for every pair of blocks that could be a run.
            cost = best[at] + (start + longest + size / rate) * (weight + (upto - before[at]) / wide)
            # Strictly: of equal costs the shortest run, which holds less.
            if cost < found:
                found, where = cost, at
        return found, where


def _find_blocks(nodes: Sequence[int], units: Units, most: RunLimit) -> list[int]:
    """Where blocks begin that hold no more than ``most``, unless of one unit; and the number of units."""
    # Of one unit a block may hold more: sizing will refuse it, with what it needs.
    begins, cores, memory = [0], 0, 0
    for at, node in enumerate(nodes):
        cores += units.cores[node]
        memory += units.memory_mb[node]
        if at > begins[-1] and (cores > most.cores or memory > most.memory_mb):
            begins.append(at)
            cores, memory = units.cores[node], units.memory_mb[node]
    return [*begins, len(nodes)]


def _measure_traffic(
    nodes: Sequence[int], begins: Sequence[int], units: Units
) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """See ``moved`` and ``handed`` of ``Line``."""
    count = len(begins) - 1
    place = {node: block for block in range(count) for node in nodes[begins[block] : begins[block + 1]]}
    moved = [0] * count
    handed: list[list[tuple[int, int]]] = [[] for _ in moved]
    for at in _list_datasets(nodes, place, units):
        size, writer, readers = units.datasets[at]
        src = place.get(writer, OUTSIDE)
        if len(readers) == 1 and src != OUTSIDE:
            blocks = [place.get(readers[0], count)]
        else:
            blocks = sorted({place.get(reader, count) for reader in readers})
        # Written as long as any reader is behind: only the last one's block takes that away.
        if src != OUTSIDE and blocks[-1] > src:
            moved[src] += size
            if blocks[-1] < count:
                handed[blocks[-1]].append((src, size))
        # Read once a run: a reader moves nothing any more once the block before it that reads is in its run.
        before = src
        for block in blocks:
            if block not in (src, count):
                moved[block] += size
                if before != OUTSIDE:
                    handed[block].append((before, size))
                before = block
    return moved, handed


def _list_datasets(nodes: Sequence[int], place: dict[int, int], units: Units) -> Iterator[int]:
    """The numbers of those that ``nodes`` write, and read from others; each once."""
    outside = set[int]()
    for node in nodes:
        yield from units.written[node]
        for at in units.reads[node]:
            if at not in outside and units.datasets[at][1] not in place:
                outside.add(at)
                yield at


def _list_runs(nodes: Sequence[int], begins: Sequence[int], first: Sequence[int]) -> list[Sequence[int]]:
    """From where, by block, the last run that ends with each begins."""
    runs: list[Sequence[int]] = []
    end = len(first)
    while end:
        block = first[end - 1]
        runs.append(nodes[begins[block] : begins[end]])
        end = block
    return runs[::-1]  # found from the end on
