"""Steps that no resident group can have both of, since it would have all that lies between them, and that does not fit.

    a ══> b ══> d      a group with a and d has b and c, too: else it would wait for a group that waits for it.
    a ══> c ══> d      Four cores hold three of them: d starts once the group of a has ended.

What lies between two steps is what is behind the one and before the other: sets of bits, one for each unit. What they
hold is counted by the bits of the amounts: so many units with a one in this place, times what that place is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.model.order import reverse_edges
from airflow_dagsched.plan.problem.problem import Problem

MOST = 200
"""Nodes; of more, there are too many pairs to look at."""


def list_kept_apart(problem: Problem) -> list[list[int]]:
    """For each unit those before it that it cannot share a group with, units as declared, by their first nodes.

    None where steps may take turns, or are left out.
    """
    graph = problem.declared
    found: list[list[int]] = [[] for _ in graph.ids]
    # Batch steps in a group take turns: then any number of them fits.
    if len(graph.ids) > MOST or not all(problem.arrays.streaming) or problem.exclusions.idle_steps:
        return found
    limits = list(_list_limits(problem))
    if not limits:
        return found
    order = [node for node in graph.order if graph.loop[node] == node]
    above = find_reached(reverse_edges(graph.condensed), order)
    below = find_reached(graph.condensed, order[::-1])
    steps = [node for node in order if graph.is_step(node)]
    for node in steps:
        found[node] = [
            before
            for before in steps
            if before != node and above[node] >> before & 1 and _is_over_any(above[node] & below[before], limits)
        ]
    return found


_Limit = tuple[list[int], int]
"""For each place of the amounts the units with a one there; and how much there is."""


def _list_limits(problem: Problem) -> Iterator[_Limit]:
    """Of what not all can have at once."""
    graph, arrays = problem.declared, problem.arrays
    counts = [step.parallelism for step in graph.steps]
    cores = [need.cores * count for need, count in zip(arrays.needs, counts, strict=True)]
    memory = [need.memory_mb * count for need, count in zip(arrays.needs, counts, strict=True)]
    for amounts, room in (
        (cores, arrays.room.cores),
        (memory, arrays.room.memory_mb),
        ([1] * len(counts), problem.rules.most_steps),
    ):
        # If all fit at once, no two are too far apart.
        if sum(amounts) > room:
            yield _split_by_bit(amounts, graph.loop), room


def _split_by_bit(amounts: Sequence[int], loop: Sequence[int]) -> list[int]:
    held: dict[int, int] = {}
    for node, amount in enumerate(amounts):
        held[loop[node]] = held.get(loop[node], 0) + amount
    # Amounts as columns of bits: a sum over a set is then a count of bits for each place, in large integers.
    places = range(max(held.values()).bit_length())
    return [sum([1 << unit for unit, amount in held.items() if amount >> place & 1]) for place in places]


def find_reached(edges: Sequence[Sequence[int]], order: Sequence[int]) -> list[int]:
    """For each unit itself and all that ``edges`` lead to from it; those come first in ``order``."""
    found = [0] * len(edges)
    for node in order:
        found[node] = 1 << node
        for other in edges[node]:
            found[node] |= found[other]
    return found


def _is_over_any(units: int, limits: Sequence[_Limit]) -> bool:
    return any(
        sum([(units & ones).bit_count() << place for place, ones in enumerate(places)]) > room
        for places, room in limits
    )
