"""All groupings of few steps.

a ══> b ══> c      {a} {b} {c}   {a b} {c}   {a} {b c}   {a b c}; not {a c} {b}, which would wait for each other
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.problem.partition import is_acyclic, name_by_least
from airflow_dagsched.plan.problem.problem import Problem


def list_units(problem: Problem) -> list[int]:
    """The first steps of those that are never split."""
    return sorted(set(problem.graph.loop[: len(problem.graph.steps)]))


def list_groupings(problem: Problem) -> Iterator[list[int]]:
    """All that obey the rules, without cycles: for each node the first of its group."""
    graph = problem.graph
    for parts in _list_partitions(problem, list_units(problem), []):
        of = {unit: part[0] for part in parts for unit in part}
        # One grouping, one spelling: else the same would be evaluated under several names.
        group_of = name_by_least([of.get(first, first) for first in graph.loop])
        # Only of whole groupings: a cycle that closes half-way may still be inside a group in the end.
        if is_acyclic(graph, group_of):
            yield group_of


def _list_partitions(problem: Problem, units: Sequence[int], parts: list[list[int]]) -> Iterator[list[list[int]]]:
    """``parts`` with the units added in all ways that the rules allow."""
    if not units:
        yield parts
        return
    unit, *others = units
    loop = problem.graph.loop
    # A unit joins a part of units before it, or begins one: so each partition comes up exactly once.
    yield from _list_partitions(problem, others, [*parts, [unit]])
    for at, part in enumerate(parts):
        wider = [*part, unit]
        if problem.rules.may_share([node for node, first in enumerate(loop) if first in wider], loop):
            yield from _list_partitions(problem, others, [*parts[:at], wider, *parts[at + 1 :]])
