"""When the steps of one group end, counted from the start of its work: a list schedule in slots.

    slots 2, 4 cores     a a a a a a . .        a (6 instances) takes all 4 cores, then 2; b starts beside
    a: 6 x 1 core        a a a a a a b b        a's second wave, c once a slot is free.
    b, c: 2 x 1 core     └ wave 1 ┘└ 2 ┘ c c

At every moment, once all that ends then has ended: running steps, in the group's order, take cores for
instances still waiting; then the first steps that are ready start, in the group's order, while a slot is
free and at least one instance finds its cores. Graham's list scheduling (1969), with wide steps in waves.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.problem.problem import Problem


class GroupSchedule(NamedTuple):
    """Seconds until the last step ends and between the first end and the last; the most at one moment; when each step
    begins.
    """

    compute_s: float
    spread_s: float
    steps: int
    cores: int
    begins: tuple[float, ...] = ()
    """Seconds, by place in the group; empty for residents, which all begin at once."""

    def name_begins(self, steps: Iterable[str]) -> dict[str, float]:
        """Step -> seconds, for the group's ``steps``; empty where there is nothing to tell them apart by."""
        if len(self.begins) < 2:
            return {}
        return {step: round(begin, DIGITS) for step, begin in zip(steps, self.begins, strict=True)}


class CorePool(Struct, frozen=True):
    """Equal containers: their cores together, and how many instances of each step they hold at once."""

    cores: int
    lanes: Sequence[int]
    """By place in the group; an instance may not be split over containers, nor leave its step's workers."""


class _Walk(Struct):
    """The state of one walk; steps are numbered by their place in the group."""

    pool: CorePool
    cores: Sequence[int]
    seconds: Sequence[float]
    waiting_instances: list[int]
    """Instances that have not started."""
    running_instances: list[int]
    """Instances that run."""
    free: int
    running: int = 0
    waiting: list[int] = field(default_factory=list)
    """Running steps with instances left, in order."""
    begins: dict[int, float] = field(default_factory=dict)
    """Steps that have begun -> when."""
    events: list[tuple[float, int, int]] = field(default_factory=list)

    def count_fitting(self, at: int) -> int:
        """Instances of step ``at`` that can start now."""
        return min(
            self.waiting_instances[at], self.pool.lanes[at] - self.running_instances[at], self.free // self.cores[at]
        )

    def start_instances(self, at: int, count: int, now: float) -> None:
        self.waiting_instances[at] -= count
        self.running_instances[at] += count
        self.free -= count * self.cores[at]
        heapq.heappush(self.events, (now + self.seconds[at], at, count))

    def serve_waiting(self, now: float) -> None:
        """Cores for the running steps."""
        for at in list(self.waiting):  # a copy: steps leave the list inside
            count = self.count_fitting(at)
            if count:
                self.start_instances(at, count, now)
                if not self.waiting_instances[at]:
                    self.waiting.remove(at)

    def begin_steps(self, ready: list[int], slots: int, now: float) -> None:
        """New steps while there is a slot, and cores for one instance."""
        # A step that finds no cores is not overtaken: steps start in the group's order.
        while ready and self.running < slots and (count := self.count_fitting(ready[0])):
            at = heapq.heappop(ready)
            self.running += 1
            self.begins[at] = now
            self.start_instances(at, count, now)
            if self.waiting_instances[at]:
                insort(self.waiting, at)  # by place: running steps are served in the group's order

    def end_next(self) -> tuple[float, list[int]]:
        """The next moment, and the steps that end at it."""
        now, ended = self.events[0][0], []
        # All that ends at this moment ends before anything starts at it.
        while self.events and self.events[0][0] == now:
            _, at, count = heapq.heappop(self.events)
            self.running_instances[at] -= count
            self.free += count * self.cores[at]
            if not self.running_instances[at] and not self.waiting_instances[at]:
                self.running -= 1
                ended.append(at)
        return now, ended


def schedule_in_slots(members: Sequence[int], problem: Problem, slots: int, pool: CorePool) -> GroupSchedule:
    """The list schedule of ``members``, in this order, in ``slots`` slots of ``pool``."""
    arrays, steps = problem.arrays, problem.graph.steps
    nexts, above = list_edges_inside(members, problem)
    walk = _Walk(
        pool,
        [arrays.needs[node].cores for node in members],
        [arrays.runtime_s[node] for node in members],
        [steps[node].parallelism for node in members],
        [0] * len(members),
        pool.cores,
    )
    ready = [at for at, count in enumerate(above) if not count]
    walk.begin_steps(ready, slots, 0.0)
    now, first, most_steps, least_free = 0.0, -1.0, walk.running, walk.free
    while walk.events:
        now, ended = walk.end_next()
        # The first end of any step: how far apart steps end is counted from it.
        if ended and first < 0:
            first = now
        for at in ended:
            for after in nexts[at]:
                above[after] -= 1
                if not above[after]:
                    heapq.heappush(ready, after)
        # Running steps come before new ones: a wide step would else be starved by narrow ones behind it.
        walk.serve_waiting(now)
        walk.begin_steps(ready, slots, now)
        most_steps, least_free = max(most_steps, walk.running), min(least_free, walk.free)
    begins = tuple(map(walk.begins.__getitem__, range(len(members))))
    return GroupSchedule(now, now - first, most_steps, pool.cores - least_free, begins)


def schedule_residents(members: Sequence[int], problem: Problem) -> GroupSchedule:
    """All from start to end; a step ends no earlier than those it reads from."""
    nexts, _ = list_edges_inside(members, problem)
    ends = [problem.arrays.runtime_s[node] for node in members]
    # By place, which is topological: a reader's end is pushed back before its own readers look at it.
    for at, afters in enumerate(nexts):
        for after in afters:
            ends[after] = max(ends[after], ends[at])
    cores = sum(problem.arrays.needs[node].cores * problem.graph.steps[node].parallelism for node in members)
    return GroupSchedule(max(ends), max(ends) - min(ends), len(members), cores)


def measure_longest_path(members: Sequence[int], problem: Problem) -> float:
    """Seconds of the longest chain of ``members``, one wave each: none can do with less."""
    if len(members) == 1:
        return problem.arrays.runtime_s[members[0]]
    nexts, _ = list_edges_inside(members, problem)
    ends = [problem.arrays.runtime_s[node] for node in members]
    for at in range(len(members) - 1, -1, -1):  # backwards: those behind are done
        ends[at] += max([ends[after] for after in nexts[at]], default=0.0)
    return max(ends)


def list_edges_inside(members: Sequence[int], problem: Problem) -> tuple[list[list[int]], list[int]]:
    """Edges within the group, by place, and how many lead to each; those that lead back in a loop do not count."""
    if len(members) == 1:
        return [[]], [0]
    place = {node: at for at, node in enumerate(members)}
    list_behind = _skip_idle(problem) if problem.exclusions.idle_steps else problem.graph.followers.__getitem__
    nexts = [[place[after] for after in list_behind(node) if place.get(after, -1) > at] for node, at in place.items()]
    above = [0] * len(members)
    for afters in nexts:
        for after in afters:
            above[after] += 1
    return nexts, above


def _skip_idle(problem: Problem) -> Callable[[int], Sequence[int]]:
    """What waits for a node, if only behind steps that are not run: those take no time."""
    followers, idle = problem.graph.followers, problem.exclusions.idle_steps

    def list_behind(node: int) -> Sequence[int]:
        found: dict[int, None] = {}  # a set that keeps its order: equal inputs, equal schedules
        queue = [*followers[node]]
        for after in queue:
            if after not in found:
                found[after] = None
                queue += followers[after] if after in idle else ()
        return [after for after in found if after not in idle]

    return list_behind
