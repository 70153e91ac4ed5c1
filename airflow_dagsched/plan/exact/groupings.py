"""All groupings of few steps.

a ══> b ══> c      {a} {b} {c}   {a b} {c}   {a} {b c}   {a b c}; not {a c} {b}, which would wait for each other
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.parts import acyclic, least_named
from airflow_dagsched.plan.search.moves import may_share


def units_of(given: Given) -> list[int]:
    """The first steps of those that are never split."""
    return sorted(set(given.graph.loop[: len(given.graph.steps)]))


def groupings(given: Given) -> Iterator[list[int]]:
    """All that obey the rules, without cycles: for each node the first of its group."""
    graph = given.graph
    for parts in _partitions(given, units_of(given), []):
        of = {unit: part[0] for part in parts for unit in part}
        home = least_named([of.get(first, first) for first in graph.loop])
        if acyclic(graph, home):
            yield home


def _partitions(given: Given, units: Sequence[int], parts: list[list[int]]) -> Iterator[list[list[int]]]:
    """``parts`` with the units added in all ways that the rules allow."""
    if not units:
        yield parts
        return
    unit, *others = units
    yield from _partitions(given, others, [*parts, [unit]])
    for at, part in enumerate(parts):
        wider = [*part, unit]
        if may_share(given, [node for node, first in enumerate(given.graph.loop) if first in wider]):
            yield from _partitions(given, others, [*parts[:at], wider, *parts[at + 1 :]])
