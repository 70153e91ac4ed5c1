"""How few bins items can go into at least where no bin holds four: by a linear program over the fullest sets.

::

    n items, t bins of three:  the others go in twos at best    ->   at least t + (n - 3t) / 2 = (n - t) / 2 bins
             t bins of two, where three never fit: others alone ->   at least t + (n - 2t)     =  n - t

So many disjoint sets there are at most as the items weigh together, if those of each set weigh 1 or more. A solver
finds weights; that they are such is checked in integers, so what it says need not be believed.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from airflow_dagsched.placement.packing.kinds import Size

MOST = 200_000
"""Sets; a linear program over more takes too long."""
GRID = 10**9
"""Weights are rounded to this part of 1."""
Chosen = tuple[int, ...]
"""A set, by position of its items in rising order of their sums."""


def least_bins(sizes: Sequence[Size], room: Size) -> int | None:
    """No packing of these items of two dimensions has fewer bins; None: nothing is said.

    Every item fits alone. Nothing is said where four may fit in one bin, or too many sets fit.
    """
    order = sorted(sizes, key=sum)
    if len(order) > 3 and sum(map(sum, order[:4])) <= sum(room):
        return None
    sets, others = list(islice(_threes(order, room), MOST)), 2
    if not sets:
        sets, others = list(islice(_twos(order, room), MOST)), 1
    if len(sets) == MOST:
        return None
    return math.ceil((len(order) - _most_disjoint(sets, len(order))) / others)


def _twos(order: Sequence[Size], room: Size) -> Iterator[Chosen]:
    for one, (x, y) in enumerate(order):
        for two in range(one + 1, len(order)):
            if x + order[two][0] <= room[0] and y + order[two][1] <= room[1]:
                yield one, two


def _threes(order: Sequence[Size], room: Size) -> Iterator[Chosen]:
    sums = [sum(size) for size in order]
    for one, (x, y) in enumerate(order):
        for two in range(one + 1, bisect_right(sums, (sum(room) - sums[one]) // 2)):
            wide, high = room[0] - x - order[two][0], room[1] - y - order[two][1]
            for three in range(two + 1, bisect_right(sums, wide + high)):
                if order[three][0] <= wide and order[three][1] <= high:
                    yield one, two, three


def _most_disjoint(sets: Sequence[Chosen], count: int) -> int:
    """No more than so many of ``sets`` share no item."""
    if not sets:
        return 0
    weights = [math.ceil(weight * GRID) for weight in _weights(sets, count)]
    return sum(weights) // min(sum(weights[at] for at in chosen) for chosen in sets)


def _weights(sets: Sequence[Chosen], count: int) -> list[float]:
    """The least that items weigh together if those of each set weigh 1."""
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("GLOP")
    weights = [solver.NumVar(0, 1, "") for _ in range(count)]
    for chosen in sets:
        solver.Add(sum(weights[at] for at in chosen) >= 1)
    solver.Minimize(sum(weights))
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return [1.0] * count
    return [weight.solution_value() for weight in weights]
