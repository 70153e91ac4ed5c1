"""A bound for resident groups where most of the work passes through few steps: what is before, between, and behind.

    a ══> b1 .. b40 ══> c      16 cores    ▐ a, 15 b ▌▐ 10 b ▌▐ 15 b, c ▌

Where a and c cannot share a group, each b is in the group of a, in that of c, or in between, alone or with others. The
two groups hold no more than the cluster has, and last as long as their longest step; in between there is room for what
is left, and time for the longest of it. For each two lengths of those groups the most core-seconds that can be in them
are found greedily, cores one by one; the shortest sum is a bound. So, too, for what is before or behind a single step.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from airflow_dagsched.plan.costing.lower_bound import LowerBound, Moments, find_moments
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.reasons.bounds import PhasesNeeded
from airflow_dagsched.plan.resident.separation import find_reached, list_kept_apart

PASSED = 8
"""Steps through which most of the work passes that are looked at."""


class _Unit(Struct, frozen=True):
    seconds: float
    """Of its group, at least."""
    cores: int


_NOBODY = _Unit(0.0, 0)


class _Bag(Struct, frozen=True):
    """Units, the longest first."""

    seconds: Sequence[float]
    cores: Sequence[int]
    """Of all before each, and of all."""
    area: Sequence[float]
    """Core-seconds likewise."""

    @classmethod
    def of(cls, units: Sequence[_Unit]) -> _Bag:
        ordered = sorted(units, key=lambda unit: -unit.seconds)
        return cls(
            [unit.seconds for unit in ordered],
            [0, *accumulate([unit.cores for unit in ordered])],
            [0.0, *accumulate([unit.cores * unit.seconds for unit in ordered])],
        )

    def sum_up_to(self, core: int) -> float:
        """Core-seconds of so many cores, from the first on."""
        at = bisect_right(self.cores, core) - 1
        return self.area[at] + (core - self.cores[at]) * self.seconds[at] if at < len(self.seconds) else self.area[-1]

    def get_seconds(self, core: int) -> float:
        """Seconds for which this core is held, the first is 0."""
        return self.seconds[bisect_right(self.cores, core) - 1]


def bound_by_phases(problem: Problem) -> LowerBound:
    """Zero where steps may take turns, or are left out."""
    moments = find_moments(problem, list_kept_apart(problem), streams=True)
    # All may share a group: there are no phases.
    if not any(moments.apart):
        return LowerBound()
    units, cores = _list_units(problem), problem.arrays.room.cores
    above, below = _find_reachable(problem, units)
    weight = {one: sum(units[other].cores for other in (*above[one], *below[one])) for one in units}
    chosen = sorted(sorted(units, key=lambda one: (-weight[one], one))[:PASSED], key=lambda one: len(above[one]))
    found = LowerBound()
    for one, other in _list_pairs(chosen, moments):
        inside = _list_between(one, other, above, below)
        bag = _Bag.of([units[unit] for unit in inside])
        ends = units.get(one, _NOBODY), units.get(other, _NOBODY)
        ahead = _find_first_start(one, inside, moments, problem)
        behind = min([moments.tail[unit] for unit in inside], default=0.0) if other < 0 else moments.tail[other]
        if other >= 0:
            ready = ahead + _find_shortest(bag, ends, cores, last=False) + problem.cluster.application_start_s
            moments.head[other] = max(moments.head[other], ready)
        seconds = ahead + _find_shortest(bag, ends, cores, last=True) + behind
        if seconds > found.seconds:
            names = tuple(problem.declared.ids[end] for end in (one, other) if end >= 0)
            found = LowerBound(seconds, PhasesNeeded(names))
    return found


def _list_units(problem: Problem) -> dict[int, _Unit]:
    graph, arrays = problem.declared, problem.arrays
    found: dict[int, _Unit] = {}
    for node, step in enumerate(graph.steps):
        known = found.get(graph.loop[node], _NOBODY)
        seconds = problem.cluster.application_start_s + arrays.runtime_s[node]
        cores = known.cores + arrays.needs[node].cores * step.parallelism
        found[graph.loop[node]] = _Unit(max(known.seconds, seconds), cores)
    return found


def _find_reachable(problem: Problem, units: dict[int, _Unit]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """For each unit those before it, and those behind it."""
    graph = problem.declared
    sets = find_reached(graph.condensed, [node for node in reversed(graph.order) if graph.loop[node] == node])
    below = {one: [other for other in units if other != one and sets[one] >> other & 1] for one in units}
    above = {one: [other for other in units if other != one and sets[other] >> one & 1] for one in units}
    return above, below


def _list_pairs(chosen: Sequence[int], moments: Moments) -> Iterator[tuple[int, int]]:
    """Pairs of steps in different groups, the first before the second; -1: all that is before, or behind."""
    for other in chosen:
        yield -1, other
        yield from ((one, other) for one in chosen if one in moments.apart[other])
    yield from ((one, -1) for one in chosen)


def _list_between(one: int, other: int, above: dict[int, list[int]], below: dict[int, list[int]]) -> list[int]:
    if one < 0:
        return above[other]
    return below[one] if other < 0 else [unit for unit in below[one] if unit in above[other]]


def _find_first_start(one: int, inside: Sequence[int], moments: Moments, problem: Problem) -> float:
    """When the first of the groups can start."""
    first = min([moments.head[unit] for unit in inside], default=0.0) if one < 0 else moments.head[one]
    return max(0.0, first - problem.cluster.application_start_s)


def _find_shortest(bag: _Bag, ends: tuple[_Unit, _Unit], cores: int, *, last: bool) -> float:
    """From the start of the first end's group to the end of the second's; to its start if not ``last``."""
    lengths = [0.0, *dict.fromkeys(bag.seconds)]
    first, second = ends
    best = float("inf")
    for one in lengths if first.cores else [0.0]:
        ahead = max(first.seconds, one)
        for other in (lengths if last else [max(lengths)]) if second.cores else [0.0]:
            behind = max(second.seconds, other) if last else 0.0
            if ahead + behind < best:
                rooms = (one, _count_cores_beside(first, cores)), (other, _count_cores_beside(second, cores))
                best = min(best, ahead + behind + _bound_between(bag, max(rooms), min(rooms), cores))
    return best


def _count_cores_beside(end: _Unit, cores: int) -> int:
    """Cores for others in the group of ``end``."""
    return cores - end.cores if end.cores else 0


def _bound_between(bag: _Bag, longer: tuple[float, int], shorter: tuple[float, int], cores: int) -> float:
    """Seconds for what is in neither group; of each how long it lasts, and the cores there are beside its end."""
    large, small = (bag.cores[bisect_left(bag.seconds, -one, key=lambda other: -other)] for one, _ in (longer, shorter))
    among = min(longer[1], small - large)
    last = small + longer[1] - among + shorter[1]
    left = [part for part in ((0, large), (large + among, small), (last, bag.cores[-1])) if part[0] < part[1]]
    area = sum([bag.sum_up_to(end) - bag.sum_up_to(first) for first, end in left])
    return max(area / cores, max(_bound_crowds(bag, left, cores), default=0.0))


def _bound_crowds(bag: _Bag, left: Sequence[tuple[int, int]], cores: int) -> Iterator[float]:
    """What some core takes at least: of the longest ``k * cores + 1`` it has ``k + 1``."""
    size = sum([end - first for first, end in left])
    for waves in range((size - 1) // cores + 1 if size else 0):
        yield sum([_get_ranked_seconds(bag, left, waves * cores - rank) for rank in range(waves + 1)])


def _get_ranked_seconds(bag: _Bag, left: Sequence[tuple[int, int]], rank: int) -> float:
    """Seconds of the core of this rank in what is left, the longest is 0."""
    for first, end in left:
        if rank < end - first:
            return bag.get_seconds(first + rank)
        rank -= end - first
    return 0.0
