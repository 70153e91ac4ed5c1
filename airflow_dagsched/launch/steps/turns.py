"""Whose turn is next: the plan's list, and a gate before the first of it that is ready.

::

    4 cores, list b a c      b b b b b b b b     b begins. a (5 tasks) waits until b's task has its core, and takes
    b 1 x 60 s               a a a a a a a a     the others; c waits until a's fifth task has one, and one is left.
    a 5 x 20 s               a a a a c c c c     Nobody overtakes the first that is ready.

It is the rule by which the planner timed the list: running steps take cores first, then the first that is ready starts
if a slot is free and one of its instances finds a core. What is measured decides, not what was predicted; where Spark
does not say, the gate is open. Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

Unit = tuple[str, ...]
"""A step, or all steps of a repeat block."""

QUIET_S = 2.0
"""A running step that has had no task for so long computes nothing in Spark, and holds nobody up."""
HOLD_S = 2.0
"""A step that is ready waits so long, at most, for one before it in the list whose inputs are about to be there."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """Of the stages of a running step that are at work now."""

    total: int = 0
    launched: int = 0
    """Those that run or have ended."""
    running: int = 0


@dataclass(frozen=True)
class TurnPlan:
    """What the plan says of the turns of a group."""

    order: Sequence[str] = ()
    begins: Mapping[str, float] = field(default_factory=dict)
    """Step -> seconds from the first step's begin."""
    instances: Mapping[str, int] = field(default_factory=dict)
    """Step -> tasks that it was planned to run at once, where its cores allow; one where nothing is said."""
    cores: int = 0
    """Tasks that were planned to run at once, of all steps together; 0: not planned."""

    def rank_units(self, units: Iterable[Unit]) -> dict[Unit, tuple[int, int]]:
        """Each unit's place. A step that the plan has not, made again for its rows, comes before all others."""
        return {unit: (self._find_place(unit), at) for at, unit in enumerate(units)}

    def is_before(self, unit: Unit, other: Unit) -> bool:
        """Whether the list has ``unit`` first, and the plan has it begin no later."""
        begins = [min(self.begins.get(step, 0.0) for step in each) for each in (unit, other)]
        return self._find_place(unit) < self._find_place(other) and begins[0] <= begins[1]

    def _find_place(self, unit: Unit) -> int:
        return min(self._places.get(step, -1) for step in unit)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {step: at for at, step in enumerate(self.order)}

    def count_instances(self, unit: Unit) -> int:
        """Tasks that the unit was planned to run at once; the steps of a block run one after another."""
        return max(self.instances.get(step, 1) for step in unit)


class Coming:
    """Which units are about to be ready."""

    def __init__(self, above: Mapping[Unit, frozenset[Unit]]) -> None:
        self._above = above
        self._below: dict[Unit, list[Unit]] = {}
        for unit, before in above.items():
            for each in before:
                self._below.setdefault(each, []).append(unit)

    def list_coming(self, running: Iterable[Unit], ended: AbstractSet[Unit]) -> list[Unit]:
        """Those that wait for nothing but for some of those ``running``."""
        at_work = set(running)
        after = dict.fromkeys(unit for each in at_work for unit in self._below.get(each, ()))
        return [unit for unit in after if self._above[unit] - ended <= at_work]


class Gate:
    """Whether the next unit may begin beside those that run.

    :param look: the tasks of each of these steps now.
    :param count_cores: tasks that the executors there are can run at once.
    """

    def __init__(
        self, plan: TurnPlan, look: Callable[[Iterable[str]], Mapping[str, Tasks]], count_cores: Callable[[], int]
    ) -> None:
        self._plan = plan
        self._look = look
        self._count_cores = count_cores
        self._quiet_since: dict[Unit, float] = {}
        self._held_since: dict[Unit, float] = {}

    def is_open(self, head: Unit, running: Sequence[Unit], now_s: float, coming: Iterable[Unit] = ()) -> bool:
        """Whether ``head`` may begin.

        :param now_s: of any clock.
        :param coming: units that wait for nothing but for some of those ``running``.
        """
        if not running or not self._plan.cores:
            return True
        return self._finds_core(head, running, now_s) and not self._is_held(head, running, now_s, coming)

    def _finds_core(self, head: Unit, running: Sequence[Unit], now_s: float) -> bool:
        """Whether one task of ``head`` finds a core, once those ``running`` have theirs."""
        # With room for all it does not matter who comes first, and nobody need wait for a look.
        if self._has_room((head, *running)):
            return True
        with suppress(Exception):  # Spark is stopping, or says less of itself: an estimate never costs an answer
            tasks = self._look(step for unit in running for step in unit)
            used = [self._measure_use(unit, [tasks.get(step, Tasks()) for step in unit], now_s) for unit in running]
            return None not in used and sum(each or 0 for each in used) < self._count_cores()
        return True

    def _has_room(self, units: Iterable[Unit]) -> bool:
        return sum(map(self._plan.count_instances, units)) <= self._plan.cores

    def _is_held(self, head: Unit, running: Sequence[Unit], now_s: float, coming: Iterable[Unit]) -> bool:
        """Whether ``head`` waits a moment more, since it would take the core of one that was to begin before it.

        Steps that were predicted to end together never quite do: without this a short step would often come before the
        long one that all wait for in the end.
        """
        if any(self._plan.is_before(unit, head) and not self._has_room((unit, head, *running)) for unit in coming):
            return now_s - self._held_since.setdefault(head, now_s) < HOLD_S
        return False

    def _measure_use(self, unit: Unit, found: Sequence[Tasks], now_s: float) -> int | None:
        """Cores that the unit has of those planned for it; None: it still waits for some."""
        total, launched = sum(each.total for each in found), sum(each.launched for each in found)
        planned = self._plan.count_instances(unit)
        if not total:
            since = self._quiet_since.setdefault(unit, now_s)
            return None if now_s - since < QUIET_S else 0
        self._quiet_since.pop(unit, None)
        # Of more tasks than were planned, only as many count: the plan's waves decide, and Spark shares out the rest.
        if launched < min(total, planned):
            return None
        return min(planned, sum(each.running for each in found))
