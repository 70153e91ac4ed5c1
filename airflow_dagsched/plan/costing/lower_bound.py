"""A lower bound of the makespan: no plan of this dataflow on this cluster is faster, whatever its groups.

*Path.* Steps and tasks along a path run one after another, waves included, and before the first step an
application must start; another one must start behind each ordinary task on the path, and where two
neighbours may not share a group, with the rows between them written and read.

*Area.* All core-seconds must find room: what starts no earlier than ``h`` and is followed by at least ``t``
ends no earlier than ``h + core-seconds / cores + t``, for every ``h`` and ``t``. Memory likewise, padded. A streaming
step holds what it needs from the start of its application on.

*Crowd.* Of the longest ``k * cores + 1`` instances some core has ``k + 1``: it takes at least as long as the
shortest so many of them one after another (Dell'Amico, Martello 1995). Again behind ``h`` and before ``t``.

Steps that stream run side by side with those they read from: along a path they count for nothing but the cuts
between them. In a group with a streaming step the others stay as well, so if any streams, no step counts. But where all
that lies between two steps does not fit at once, they are in two groups, and there is a cut: ``KeptApart`` says which.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, repeat

from msgspec import Struct

from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.problem.colors import TASK
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.reasons.bounds import BoundReason, CoreSecondsNeeded, CoresShared, LongestPath, MemoryNeeded

LOOKS = 16
"""Different tails behind which the area is looked at, at most; every head is."""
LOOKED_AT = 10_000
"""Steps over which those looks go together: more steps, fewer looks."""
CROWDS = 8
"""Different heads, and tails, between which crowds are looked at."""
CROWDED = 20_000
"""Instances over which those looks go together."""
ROUNDING = 1e-9


KeptApart = Sequence[Sequence[int]]
"""For each unit those before it that cannot be in its group, with all between them; ``()``: there are none."""


class Moments(Struct, frozen=True):
    """When each can begin, and what must follow: seconds by node; those of a loop are its first node's."""

    own: list[float]
    """From its start to its end, for a step without the start of its application."""
    apart: KeptApart
    """For each the steps, neighbours or not, whose groups must have ended before its group starts."""
    head: list[float]
    """Before that, at least."""
    tail: list[float]
    """Behind it, at least."""


class LowerBound(Struct, frozen=True):
    """No plan can take less than so many seconds, and why."""

    seconds: float = 0.0
    reason: BoundReason = "nothing to run"


def bound_makespan(problem: Problem, kept_apart: KeptApart = ()) -> LowerBound:
    """No plan of the problem takes less. Zero for a dataflow without steps and tasks."""
    # One streaming step may make any other resident, whatever its group: then no step's own time counts.
    streams = problem.has_streaming
    times = find_moments(problem, kept_apart, streams=streams)
    path = max([head + own for head, own in zip(times.head, times.own, strict=True)], default=0.0)
    area = max(_bound_by_areas(problem, times, streams), default=LowerBound(), key=lambda bound: bound.seconds)
    # At a tie the path: a reader can follow it step by step.
    return area if area.seconds > path else LowerBound(path, _describe_path(problem, times, path))


def _describe_path(problem: Problem, times: Moments, length: float) -> BoundReason:
    """The nodes of a path of this length."""
    graph, head = problem.declared, times.head
    left = [before + own + after for before, own, after in zip(head, times.own, times.tail, strict=True)]
    longest = {node for node, first in enumerate(graph.loop) if node == first and left[node] >= length * (1 - ROUNDING)}
    behind: dict[int, list[int]] = {}
    for node, befores in enumerate(times.apart):
        for before in befores:
            behind.setdefault(before, []).append(node)
    chain: list[int] = []
    nexts: Iterable[int] = longest
    while nexts:
        chain.append(min(nexts, key=lambda node: (head[node], node)))
        nexts = [after for after in (*graph.condensed[chain[-1]], *behind.get(chain[-1], ())) if after in longest]
    if not chain:
        return "nothing to run"
    tasks = frozenset(graph.ids[node] for node in chain if not graph.is_step(node))
    is_parted = any(before in times.apart[node] for before, node in pairwise(chain))
    return LongestPath(tuple(graph.ids[node] for node in chain), tasks, is_parted)


def find_moments(problem: Problem, kept_apart: KeptApart, *, streams: bool) -> Moments:
    """When each step and task can begin, and what must follow.

    ``streams``: whether steps run side by side with those they read from.
    """
    graph, arrays = problem.declared, problem.arrays
    start = problem.cluster.application_start_s
    own = [0.0] * len(graph.ids)
    for node, first in enumerate(graph.loop):
        own[first] = max(own[first], arrays.runtime_s[node] if streams else arrays.least_s[node])
    head = [start if graph.is_step(node) else 0.0 for node in range(len(own))]
    tail = [0.0] * len(own)
    gaps, apart = Gaps(problem).list_gaps(), kept_apart or [[] for _ in graph.ids]
    order = [node for node in graph.order if graph.loop[node] == node]
    for node in order:
        # Kept apart means another application, which starts only once all of the earlier one has ended.
        if apart[node]:
            head[node] = max(head[node], max([head[before] + own[before] for before in apart[node]]) + start)
        here, end = head[node], head[node] + own[node]
        for after, gap in zip(graph.condensed[node], gaps[node], strict=False):
            # No gap and streaming: the two run side by side, so the second begins no later than the first must.
            ready = end + gap if gap is not None else here if streams else end
            if ready > head[after]:  # noqa: PLR1730  a call of max here costs a tenth of the bound
                head[after] = ready
    # Tails need those behind to be done; heads, above, those before.
    for node in reversed(order):
        for after, gap in zip(graph.condensed[node], gaps[node], strict=False):
            behind = (gap or 0.0) + (0.0 if streams and gap is None else own[after]) + tail[after]
            if behind > tail[node]:  # noqa: PLR1730
                tail[node] = behind
        for before in apart[node]:
            tail[before] = max(tail[before], start + own[node] + tail[node])
    return Moments(own, apart, head, tail)


class Gaps:
    """Seconds that must lie between neighbours."""

    def __init__(self, problem: Problem) -> None:
        self._declared, self._loop, self._rules = problem.declared, problem.graph.loop, problem.rules
        self._start, self._rate = problem.cluster.application_start_s, problem.cluster.spill_mb_s * MIB
        self._bytes: list[dict[int, int]] = []
        """By writer and reader, the first nodes of their loops."""
        colors = set(problem.rules.color)
        self.none = colors <= {max(colors, default=TASK)} - {TASK} and not problem.rules.apart
        """Whether all may share a group."""
        if len(colors - {TASK}) > 1 or problem.rules.apart:
            loop = problem.declared.loop
            # Only where some neighbours may not share a group: else nothing needs to be written between any two.
            self._bytes = [{} for _ in loop]
            for dataset in problem.graph.datasets:
                read, size = self._bytes[loop[dataset.src]], dataset.bytes
                for reader in {loop[reader] for reader in dataset.readers} if size else ():
                    read[reader] = read.get(reader, 0) + size

    def list_gaps(self) -> Sequence[Iterable[float | None]]:
        """For each node what must lie between it and each that is directly behind it."""
        condensed = self._declared.condensed
        if self.none:
            return [repeat(None)] * len(condensed)
        return [self._list_gaps_of(node, nexts) for node, nexts in enumerate(condensed)]

    def find_gap(self, node: int, after: int) -> float | None:
        """None where the two may share a group."""
        return self._list_gaps_of(node, (after,))[0]

    def _list_gaps_of(self, node: int, nexts: Sequence[int]) -> list[float | None]:
        color, loop, start, rate = self._rules.color, self._loop, self._start, self._rate
        here, apart = color[node], self._rules.apart.get(loop[node], ())
        read = self._bytes[node] if self._bytes else {}
        return [
            0.0
            if color[after] == TASK
            else None
            if color[after] == here and loop[after] not in apart
            else start + 2 * read.get(after, 0) / rate  # the rows are written once and read once
            for after in nexts
        ]


def _bound_by_areas(problem: Problem, times: Moments, streams: bool) -> Iterator[LowerBound]:
    arrays = problem.arrays
    cores, memory = problem.arrays.room.cores, problem.arrays.room.memory_mb
    rows = _list_areas(problem, times)
    # By falling heads: then one running sum serves all heads at once.
    rows.sort(reverse=True)
    looks = _choose_looks([tail for _, tail, _, _ in rows])
    if cores:
        seconds = max(_bound_by_area([(head, tail, used) for head, tail, used, _ in rows], cores, looks), default=0.0)
        yield LowerBound(seconds, CoreSecondsNeeded(sum(row[2] for row in rows), cores))
        crowd = _bound_by_crowd(problem, times, cores)
        yield LowerBound(crowd, CoresShared(cores))
    if memory and (streams or all(need.cores == 1 for need in arrays.needs)):
        seconds = max(_bound_by_area([(head, tail, used) for head, tail, _, used in rows], memory, looks), default=0.0)
        yield LowerBound(seconds, MemoryNeeded(memory))


def _list_areas(problem: Problem, times: Moments) -> list[tuple[float, float, float, float]]:
    """Of each step head and tail, its core-seconds and its MiB-seconds."""
    arrays, head, tail = problem.arrays, times.head, times.tail
    start, padded = problem.cluster.application_start_s, 1 + problem.settings.padding_fraction
    rows = []
    for node, step in enumerate(problem.declared.steps):
        first, need = problem.declared.loop[node], arrays.needs[node]
        # A resident step holds what it needs from the start of its application on; batch steps share theirs.
        before = start if arrays.streaming[node] else 0.0
        seconds = step.parallelism * (arrays.runtime_s[node] + before)
        rows.append((head[first] - before, tail[first], need.cores * seconds, need.memory_mb * padded * seconds))
    return rows


def _choose_looks(tails: list[float]) -> list[float]:
    """Some of the tails; fewer of many."""
    return _spread_evenly(tails, min(LOOKS, LOOKED_AT // max(1, len(tails))))


def _spread_evenly(values: list[float], most: int) -> list[float]:
    """Some of the values, two at least where they differ, evenly from the least to the greatest."""
    ordered = sorted(set(values))
    steps = max(2, most) - 1
    # Any choice of looks is a valid bound; both ends are kept, for the least has all steps behind it.
    return sorted({ordered[at * (len(ordered) - 1) // steps] for at in range(steps + 1)}) if ordered else []


def _bound_by_area(rows: Sequence[tuple[float, float, float]], room: int, looks: Sequence[float]) -> Iterator[float]:
    """``rows``: head, tail, what is held times seconds, by falling heads; ``room``: how much there is to hold."""
    for behind in looks:
        late = [row for row in rows if row[1] >= behind]
        areas = accumulate([row[2] for row in late])
        yield behind + max(row[0] + area / room for row, area in zip(late, areas, strict=True))


def _list_instances(problem: Problem, times: Moments) -> Iterator[tuple[float, float, float, int]]:
    """For each step head, tail, what one instance takes, and the cores of all instances."""
    graph, arrays = problem.declared, problem.arrays
    for node, step in enumerate(graph.steps):
        start = problem.cluster.application_start_s if arrays.streaming[node] else 0.0
        first, cores = graph.loop[node], arrays.needs[node].cores * step.parallelism
        yield times.head[first] - start, times.tail[first], arrays.runtime_s[node] + start, cores


def _bound_by_crowd(problem: Problem, times: Moments, cores: int) -> float:
    """The most of head + what some core takes at least + tail."""
    steps, needs = problem.declared.steps, problem.arrays.needs
    pieces = sum([need.cores * step.parallelism for need, step in zip(needs, steps, strict=True)])
    if not cores < pieces <= CROWDED:  # no more pieces than cores: no core has to take two
        return 0.0
    rows = sorted(_list_instances(problem, times), key=lambda row: -row[2])
    looks = min(CROWDS, math.isqrt(CROWDED // pieces))
    heads, tails = (_spread_evenly([row[side] for row in rows], looks) for side in (0, 1))
    found = 0.0
    for ahead in heads:
        later = [row for row in rows if row[0] >= ahead]
        for behind in tails:
            waves = _measure_waves([row for row in later if row[1] >= behind], cores)
            found = max(found, ahead + waves + behind if waves else 0.0)
    return found


def _measure_waves(rows: Sequence[tuple[float, float, float, int]], cores: int) -> float:
    """Seconds of some core, zero where there is no crowd; ``rows`` by falling lengths."""
    longest = [row[2] for row in rows for _ in range(row[3])]
    sums = [0.0, *accumulate(longest)]
    waves = range(1, (len(longest) - 1) // cores + 1)
    # Of the k * cores + 1 longest some core has k + 1 (pigeonholes), at best the shortest of these.
    return max((sums[k * cores + 1] - sums[k * cores - k] for k in waves), default=0.0)
