"""The executor shapes of groups that have been sized before: many groupings share groups, most steps are alike.

A group asks for what its slots can use. Groups that could run side by side then wait for each other where none of them
can use all cores; with an even share of the cores each, all of them start at once, and all cores are used:

    80 cores, 64 slots, {1,000 steps} {1,000 steps}      64 cores, then 64      ──>      40 and 40
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from airflow_dagsched.plan.costing.capacity import FreeCapacity
from airflow_dagsched.plan.costing.executor_shape import ExecutorShape, size_group
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import ExecutorSize


class GroupSizes:
    """Sizes groups of one problem, each list of steps once; what it keeps changes no answer, only its speed."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._by_steps: dict[tuple[int | None, tuple[int, ...]], ExecutorShape] = {}
        """By the most cores, and by the steps in the order in which they start: another order takes another time."""
        self.of_step: dict[int, ExecutorShape] = {}
        """Of groups of one step that have been sized."""
        self._by_kind: dict[tuple[int, ExecutorSize | None], tuple[ExecutorShape, int]] = {}
        """The shape of a step alone, and its waves, by its kind and what its author wants."""

    def find_shape(self, name: str, steps: Sequence[int], most_cores: int | None = None) -> ExecutorShape:
        """The shape of the group ``name`` of these steps, in the order in which they start; raises ``DoesNotFit``.

        ``most_cores``: see ``size_group``.
        """
        if len(steps) == 1 and most_cores is None:
            return self._size_step(name, steps[0])
        key = most_cores, tuple(steps)
        known = self._by_steps.get(key)
        if known is None:
            # The name is not part of the key: it is in a refusal alone, and refusals are not kept.
            known = self._by_steps[key] = size_group(name, steps, self._problem, most_cores)
        return known

    def _size_step(self, name: str, node: int) -> ExecutorShape:
        known = self.of_step.get(node)
        if known is None:
            known = self.of_step[node] = self._size_like_others(name, node)
        return known

    def _size_like_others(self, name: str, node: int) -> ExecutorShape:
        """Of one step: most steps are like others but for what a wave of them takes."""
        arrays = self._problem.arrays
        sizes, seconds = self._problem.run.sizes, arrays.runtime_s[node]
        kind = arrays.kind[node], sizes.get(self._problem.graph.ids[node]) if sizes else None
        # All instances of a step take equally long, so its schedule is so many waves, whatever a wave takes.
        if kind in self._by_kind and seconds:
            shape, waves = self._by_kind[kind]
            return _set_duration(shape, waves * seconds)
        shape = size_group(name, (node,), self._problem)
        # Dealt shares name the instances of this very step.
        if seconds and not shape.dealt:
            self._by_kind[kind] = shape, round(shape.schedule.compute_s / seconds)  # whole, but for rounding of the sum
        return shape

    def share_cores(
        self,
        members: Mapping[int, Sequence[int]],
        edges: Mapping[int, Sequence[int]],
        shapes: Mapping[int, ExecutorShape],
    ) -> dict[int, ExecutorShape]:
        """Shapes of fewer cores, by the groups' first steps, where these end sooner side by side."""
        found: dict[int, ExecutorShape] = {}
        for siblings in self._list_siblings(members, edges, shapes):
            waves = math.ceil(len(siblings) / self._count_at_once([shapes[first] for first in siblings]))
            # Where all find room as they are, none need give up any.
            narrow = self._narrow_evenly(siblings, members, shapes) if waves > 1 else {}
            if narrow and self._measure_longest(narrow, siblings) < waves * self._measure_longest(shapes, siblings):
                found |= narrow
        return found

    def _list_siblings(
        self,
        members: Mapping[int, Sequence[int]],
        edges: Mapping[int, Sequence[int]],
        shapes: Mapping[int, ExecutorShape],
    ) -> Iterator[list[int]]:
        """Groups that wait for the same, and for which the same waits; each has more steps than slots, none has all
        cores.
        """
        slots, cores = self._problem.settings.slots, self._problem.arrays.room.cores
        # Slots for all cores, at the least: then no group leaves any to others.
        if slots >= cores:
            return
        limited = [first for first, shape in shapes.items() if len(members[first]) > slots and _is_short(shape, cores)]
        above: dict[int, list[int]] = {first: [] for first in limited}
        for node, nexts in edges.items() if len(limited) > 1 else ():
            for after in nexts:
                if after in above:
                    above[after].append(node)
        alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
        for first in limited:
            alike.setdefault((tuple(above[first]), tuple(edges[first])), []).append(first)
        yield from (siblings for siblings in alike.values() if len(siblings) > 1)

    def _narrow_evenly(
        self, siblings: Sequence[int], members: Mapping[int, Sequence[int]], shapes: Mapping[int, ExecutorShape]
    ) -> dict[int, ExecutorShape]:
        """Each with as many containers; empty where even so not all find room at once."""
        cores = max(shapes[first].cores for first in siblings)
        # Counted by worker: a container is on one, so some cores of each may be left over.
        containers = sum(worker.free_cores // cores for worker in self._problem.arrays.workers) // len(siblings)
        narrow = {first: self.find_shape("of several", members[first], containers * cores) for first in siblings}
        return narrow if self._count_at_once([*narrow.values()]) == len(siblings) else {}

    def _count_at_once(self, shapes: Sequence[ExecutorShape]) -> int:
        room = FreeCapacity(self._problem.arrays.workers, self._problem.settings.applications)
        return sum(1 for shape in shapes if room.take_first(shape))

    def _measure_longest(self, shapes: Mapping[int, ExecutorShape], siblings: Sequence[int]) -> float:
        """Seconds, with the start of an application."""
        longest = max(shapes[first].schedule.compute_s for first in siblings)
        return self._problem.cluster.application_start_s + longest


def _is_short(shape: ExecutorShape, cores: int) -> bool:
    """Whether a group leaves some of so many cores to others; on some workers only it could not use them, anyway."""
    return shape.residency == "slots" and not shape.pinned and shape.held_cores < cores


def _set_duration(shape: ExecutorShape, seconds: float) -> ExecutorShape:
    """The shape for a step that takes so many seconds: the same one, where it does."""
    if seconds == shape.schedule.compute_s:
        return shape
    return shape._replace(schedule=shape.schedule._replace(compute_s=seconds))
