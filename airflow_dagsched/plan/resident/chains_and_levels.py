"""Resident groupings by the shape of the graph: chains as one, and cuts by how much is left behind a step.

    a ══> b ══> c ══> d      {a b c}: each hands to one that takes from nobody else; joined for as long as all fit
                e ══> d

    tail   90  70  40  10    cut in two: {90 70} {40 10}; what has most behind it comes first

A tail never rises along an edge, so groups of alike tails form a row: none waits for a later one. And contracting an
edge that is the only one out of its source and into its target closes no cycle.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from airflow_dagsched.model.order import reverse_edges
from airflow_dagsched.plan.problem.partition import cut_groups, name_by_least
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.step_arrays import measure_step_tails
from airflow_dagsched.plan.resident.segmentation import RunLimit, Units

PARTS = range(2, 7)
"""Groups of alike tails."""


def join_chains(problem: Problem, group_of: Sequence[int], room: RunLimit) -> list[int]:
    """Single steps with those of a chain that share a group as one, as far as they hold no more than ``room``."""
    graph, units = problem.graph, Units.of(problem)
    home, above = list(graph.loop), reverse_edges(graph.condensed)
    cores, memory = list(units.cores), list(units.memory_mb)
    for node in graph.order:
        before = above[node]
        if graph.loop[node] != node or len(before) != 1 or len(graph.condensed[before[0]]) != 1:
            continue
        first = home[before[0]]
        fits = cores[first] + cores[node] <= room.cores and memory[first] + memory[node] <= room.memory_mb
        if fits and graph.is_step(first) and graph.is_step(node) and group_of[first] == group_of[node]:
            home[node] = first
            cores[first] += cores[node]
            memory[first] += memory[node]
    return name_by_least([home[of] for of in graph.loop])


def cut_by_tails(problem: Problem, group_of: Sequence[int]) -> Iterator[list[int]]:
    """The groups of ``group_of``, each cut into two to six by how long all behind a step takes."""
    graph = problem.graph
    tails = [-tail for tail in measure_step_tails(graph, problem.arrays.least_s)]
    ranked = sorted(tails[: len(graph.steps)])
    for parts in PARTS:
        limits = [ranked[len(ranked) * part // parts] for part in range(1, parts)]
        yield cut_groups(graph, group_of, [bisect_right(limits, tail) for tail in tails])
