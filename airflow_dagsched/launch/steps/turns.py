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
from contextlib import suppress
from dataclasses import dataclass, field

Unit = tuple[str, ...]
"""A step, or all steps of a repeat block."""

QUIET_S = 2.0
"""A running step that has had no task for so long computes nothing in Spark, and holds nobody up."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """Of the stages of a running step that are at work now."""

    total: int = 0
    launched: int = 0
    """Those that run or have ended."""
    running: int = 0


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """What the plan says of the turns of a group."""

    order: Sequence[str] = ()
    instances: Mapping[str, int] = field(default_factory=dict)
    """Step -> tasks that it was planned to run at once, where its cores allow; one where nothing is said."""
    cores: int = 0
    """Tasks that were planned to run at once, of all steps together; 0: not planned."""

    def rank_units(self, units: Iterable[Unit]) -> dict[Unit, tuple[int, int]]:
        """Each unit's place. A step that the plan has not, made again for its rows, comes before all others."""
        place = {step: at for at, step in enumerate(self.order)}
        return {unit: (min(place.get(step, -1) for step in unit), at) for at, unit in enumerate(units)}

    def count_instances(self, unit: Unit) -> int:
        """Tasks that the unit was planned to run at once; the steps of a block run one after another."""
        return max(self.instances.get(step, 1) for step in unit)


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

    def is_open(self, head: Unit, running: Sequence[Unit], now_s: float) -> bool:
        """Whether one task of ``head`` finds a core, once those ``running`` have theirs; ``now_s``: of any clock."""
        wanted = sum(map(self._plan.count_instances, (head, *running)))
        # With room for all it does not matter who comes first, and nobody need wait for a look.
        if not running or not self._plan.cores or wanted <= self._plan.cores:
            return True
        with suppress(Exception):  # Spark is stopping, or says less of itself: an estimate never costs an answer
            tasks = self._look(step for unit in running for step in unit)
            used = [self._measure_use(unit, [tasks.get(step, Tasks()) for step in unit], now_s) for unit in running]
            return None not in used and sum(each or 0 for each in used) < self._count_cores()
        return True

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
