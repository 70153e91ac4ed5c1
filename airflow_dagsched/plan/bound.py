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
that lies between two steps does not fit at once, they are in two groups, and there is a cut (see ``between``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, repeat

from msgspec import Struct

from airflow_dagsched.plan.between import kept_apart
from airflow_dagsched.plan.colors import TASK
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.words import count
from airflow_dagsched.plan.work import MIB

LOOKS = 16
"""Different tails behind which the area is looked at, at most; every head is."""
LOOKED_AT = 10_000
"""Steps over which those looks go together: more steps, fewer looks."""
CROWDS = 8
"""Different heads, and tails, between which crowds are looked at."""
CROWDED = 20_000
"""Instances over which those looks go together."""
TOLD = 8
"""Names of a path that are told."""
PARTED = ", of which not all fits at once"
ROUNDING = 1e-9


class Moments(Struct, frozen=True):
    """When each can begin, and what must follow: seconds by node; those of a loop are its first node's."""

    own: list[float]
    """From its start to its end, for a step without the start of its application."""
    apart: list[list[int]]
    """For each the steps, neighbours or not, whose groups must have ended before its group starts."""
    head: list[float]
    """Before that, at least."""
    tail: list[float]
    """Behind it, at least."""


class Bound(Struct, frozen=True):
    """No plan can take less than so many seconds, and why."""

    seconds: float = 0.0
    why: str = ""


def lower_bound(given: Given) -> Bound:
    """Zero for a dataflow without steps and tasks."""
    streams = any(given.work.streaming)
    times = moments_of(given, streams=streams)
    path = max([head + own for head, own in zip(times.head, times.own, strict=True)], default=0.0)
    area = max(_areas(given, times, streams), default=Bound(), key=lambda bound: bound.seconds)
    return area if area.seconds > path else Bound(path, _path(given, times, path))


def _path(given: Given, times: Moments, length: float) -> str:
    """The nodes of a path of this length, ordinary tasks in brackets."""
    graph, head = given.declared, times.head
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
    names = [graph.ids[node] if graph.is_step(node) else f"({graph.ids[node]})" for node in chain]
    if len(names) > TOLD:
        names[TOLD // 2 : -TOLD // 2] = [f"... {len(names) - TOLD} more"]
    parted = any(before in times.apart[node] for before, node in pairwise(chain))
    return f"the longest path is {' > '.join(names)}{PARTED if parted else ''}" if names else ""


def moments_of(given: Given, *, streams: bool) -> Moments:
    """``streams``: whether steps run side by side with those they read from."""
    graph, work = given.declared, given.work
    start = given.cluster.application_start_s
    own = [0.0] * len(graph.ids)
    for node, first in enumerate(graph.loop):
        own[first] = max(own[first], work.runtime[node] if streams else work.least[node])
    head = [start if graph.is_step(node) else 0.0 for node in range(len(own))]
    tail = [0.0] * len(own)
    gaps, apart = Gaps(given).behind(), kept_apart(given)
    order = [node for node in graph.order if graph.loop[node] == node]
    for node in order:
        if apart[node]:
            head[node] = max(head[node], max([head[before] + own[before] for before in apart[node]]) + start)
        here, end = head[node], head[node] + own[node]
        for after, gap in zip(graph.condensed[node], gaps[node], strict=False):
            ready = end + gap if gap is not None else here if streams else end
            if ready > head[after]:  # noqa: PLR1730  a call of max here costs a tenth of the bound
                head[after] = ready
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

    def __init__(self, given: Given) -> None:
        self._declared, self._loop, self._rules = given.declared, given.graph.loop, given.rules
        self._start, self._rate = given.cluster.application_start_s, given.cluster.spill_mb_s * MIB
        self._bytes: list[dict[int, int]] = []
        """By writer and reader, the first nodes of their loops."""
        colors = set(given.rules.color)
        self.none = colors <= {max(colors, default=TASK)} - {TASK} and not given.rules.apart
        """Whether all may share a group."""
        if len(colors - {TASK}) > 1 or given.rules.apart:
            loop = given.declared.loop
            self._bytes = [{} for _ in loop]
            for dataset in given.graph.datasets:
                read, size = self._bytes[loop[dataset.src]], dataset.bytes
                for reader in {loop[reader] for reader in dataset.readers} if size else ():
                    read[reader] = read.get(reader, 0) + size

    def behind(self) -> Sequence[Iterable[float | None]]:
        """For each node what must lie between it and each that is directly behind it."""
        condensed = self._declared.condensed
        if self.none:
            return [repeat(None)] * len(condensed)
        return [self._behind(node, nexts) for node, nexts in enumerate(condensed)]

    def between(self, node: int, after: int) -> float | None:
        """None where the two may share a group."""
        return self._behind(node, (after,))[0]

    def _behind(self, node: int, nexts: Sequence[int]) -> list[float | None]:
        color, loop, start, rate = self._rules.color, self._loop, self._start, self._rate
        here, apart = color[node], self._rules.apart.get(loop[node], ())
        read = self._bytes[node] if self._bytes else {}
        return [
            0.0
            if color[after] == TASK
            else None
            if color[after] == here and loop[after] not in apart
            else start + 2 * read.get(after, 0) / rate
            for after in nexts
        ]


def _areas(given: Given, times: Moments, streams: bool) -> Iterator[Bound]:
    work = given.work
    cores = sum(worker.free_cores for worker in work.workers)
    memory = sum(worker.free_memory_mb for worker in work.workers)
    rows = _rows(given, times)
    rows.sort(reverse=True)
    looks = _looks([tail for _, tail, _, _ in rows])
    if cores:
        seconds = max(_area([(head, tail, used) for head, tail, used, _ in rows], cores, looks), default=0.0)
        yield Bound(seconds, f"the steps need {sum(row[2] for row in rows):.0f} core-seconds of {count(cores, 'core')}")
        crowd = _crowd(given, times, cores)
        yield Bound(crowd, f"the longest steps are more than {count(cores, 'core')}, some core has several of them")
    if memory and (streams or all(need.cores == 1 for need in work.needs)):
        seconds = max(_area([(head, tail, used) for head, tail, _, used in rows], memory, looks), default=0.0)
        yield Bound(seconds, f"the steps need their memory of the {memory} MiB there are")


def _rows(given: Given, times: Moments) -> list[tuple[float, float, float, float]]:
    """Of each step head and tail, its core-seconds and its MiB-seconds."""
    work, head, tail = given.work, times.head, times.tail
    start, padded = given.cluster.application_start_s, 1 + given.settings.padding_fraction
    rows = []
    for node, step in enumerate(given.declared.steps):
        first, need = given.declared.loop[node], work.needs[node]
        before = start if work.streaming[node] else 0.0
        seconds = step.parallelism * (work.runtime[node] + before)
        rows.append((head[first] - before, tail[first], need.cores * seconds, need.memory_mb * padded * seconds))
    return rows


def _looks(tails: list[float]) -> list[float]:
    """Some of the tails; fewer of many."""
    return _spread(tails, min(LOOKS, LOOKED_AT // max(1, len(tails))))


def _spread(values: list[float], most: int) -> list[float]:
    """Some of the values, two at least where they differ, evenly from the least to the greatest."""
    ordered = sorted(set(values))
    steps = max(2, most) - 1
    return sorted({ordered[at * (len(ordered) - 1) // steps] for at in range(steps + 1)}) if ordered else []


def _area(rows: Sequence[tuple[float, float, float]], room: int, looks: Sequence[float]) -> Iterator[float]:
    """``rows``: head, tail, what is held times seconds, by falling heads; ``room``: how much there is to hold."""
    for behind in looks:
        late = [row for row in rows if row[1] >= behind]
        areas = accumulate([row[2] for row in late])
        yield behind + max(row[0] + area / room for row, area in zip(late, areas, strict=True))


def _instances(given: Given, times: Moments) -> Iterator[tuple[float, float, float, int]]:
    """For each step head, tail, what one instance takes, and the cores of all instances."""
    graph, work = given.declared, given.work
    for node, step in enumerate(graph.steps):
        start = given.cluster.application_start_s if work.streaming[node] else 0.0
        first, cores = graph.loop[node], work.needs[node].cores * step.parallelism
        yield times.head[first] - start, times.tail[first], work.runtime[node] + start, cores


def _crowd(given: Given, times: Moments, cores: int) -> float:
    """The most of head + what some core takes at least + tail."""
    steps, needs = given.declared.steps, given.work.needs
    pieces = sum([need.cores * step.parallelism for need, step in zip(needs, steps, strict=True)])
    if not cores < pieces <= CROWDED:
        return 0.0
    rows = sorted(_instances(given, times), key=lambda row: -row[2])
    looks = min(CROWDS, math.isqrt(CROWDED // pieces))
    heads, tails = (_spread([row[side] for row in rows], looks) for side in (0, 1))
    found = 0.0
    for ahead in heads:
        later = [row for row in rows if row[0] >= ahead]
        for behind in tails:
            waves = _waves([row for row in later if row[1] >= behind], cores)
            found = max(found, ahead + waves + behind if waves else 0.0)
    return found


def _waves(rows: Sequence[tuple[float, float, float, int]], cores: int) -> float:
    """Seconds of some core, zero where there is no crowd; ``rows`` by falling lengths."""
    longest = [row[2] for row in rows for _ in range(row[3])]
    sums = [0.0, *accumulate(longest)]
    waves = range(1, (len(longest) - 1) // cores + 1)
    return max((sums[k * cores + 1] - sums[k * cores - k] for k in waves), default=0.0)
