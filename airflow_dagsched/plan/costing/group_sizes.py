"""The executor shapes of groups that have been sized before: many groupings share groups, most steps are alike."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.plan.costing.executor_shape import ExecutorShape, size_group
from airflow_dagsched.plan.problem.problem import Problem


class GroupSizes:
    """Sizes groups of one problem, each list of steps once; what it keeps changes no answer, only its speed."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._by_steps: dict[tuple[int, ...], ExecutorShape] = {}
        """By the steps in the order in which they start: another order takes another time."""
        self.of_step: dict[int, ExecutorShape] = {}
        """Of groups of one step that have been sized."""
        self._by_kind: dict[int, tuple[ExecutorShape, int]] = {}
        """The shape of a step alone, and its waves, by its kind."""

    def find_shape(self, name: str, steps: Sequence[int]) -> ExecutorShape:
        """The shape of the group ``name`` of these steps, in the order in which they start; raises ``DoesNotFit``."""
        if len(steps) == 1:
            return self._size_step(name, steps[0])
        key = tuple(steps)
        known = self._by_steps.get(key)
        if known is None:
            # The name is not part of the key: it is in a refusal alone, and refusals are not kept.
            known = self._by_steps[key] = size_group(name, steps, self._problem)
        return known

    def _size_step(self, name: str, node: int) -> ExecutorShape:
        known = self.of_step.get(node)
        if known is None:
            known = self.of_step[node] = self._size_like_others(name, node)
        return known

    def _size_like_others(self, name: str, node: int) -> ExecutorShape:
        """Of one step: most steps are like others but for what a wave of them takes."""
        arrays = self._problem.arrays
        kind, seconds = arrays.kind[node], arrays.runtime_s[node]
        # All instances of a step take equally long, so its schedule is so many waves, whatever a wave takes.
        if kind in self._by_kind and seconds:
            shape, waves = self._by_kind[kind]
            return _set_duration(shape, waves * seconds)
        shape = size_group(name, (node,), self._problem)
        # Dealt shares name the instances of this very step.
        if seconds and not shape.dealt:
            self._by_kind[kind] = shape, round(shape.schedule.compute_s / seconds)  # whole, but for rounding of the sum
        return shape


def _set_duration(shape: ExecutorShape, seconds: float) -> ExecutorShape:
    """The shape for a step that takes so many seconds: the same one, where it does."""
    if seconds == shape.schedule.compute_s:
        return shape
    return shape._replace(schedule=shape.schedule._replace(compute_s=seconds))
