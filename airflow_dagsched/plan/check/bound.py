"""The lower bound is no lower than the simplest there are, which are worked out here.

*Path.* Along a path of steps and ordinary tasks one ends before the next begins, waves of instances included; an
application starts before its first step, and another behind each ordinary task.

*Area.* All core-seconds have to find room on all cores, once an application has started.

Steps that stream run side by side with others: if any does, steps count for nothing along a path but in front of a
task. Of steps that repeat, none counts before another. Where steps are left out, applications may be, too: no start
counts. A higher bound may have been proved in ways that take a planner: that it is no higher than the makespan is all
that can be said of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.check.running import instances_left, lasting_s

TOLERANCE_S = 1e-3


def check_bound(facts: Facts, ends: Mapping[str, float]) -> Iterator[Violation]:
    """``ends``: of groups as predicted, of ordinary tasks the earliest.

    Part-way through a run the bound is that of what is left, from a moment on that the plan does not say.
    """
    plan = facts.plan
    if plan.lower_bound_s and not plan.lower_bound_reason:
        yield Violation("reason", "lower_bound_s", "says nothing")
    if facts.part_way or any(len(group.steps) > len(steps) for group, steps in facts.members):
        return
    work = _Work.of(facts)
    for what, found in (("path", _path(facts, work, ends)), ("core-seconds", _area(work))):
        least = min(found, plan.makespan_s)
        if plan.lower_bound_s < least - TOLERANCE_S - 1e-9 * least:
            yield Violation("times", "lower_bound_s", f"is {plan.lower_bound_s:g} s, but the {what} take {found:g} s")


@dataclass(frozen=True, slots=True)
class _Work:
    """Of the steps, by their places in the plan."""

    steps: Sequence[Step]
    counts: Sequence[int]
    """Instances that run."""
    seconds: Sequence[float]
    """Of one of them."""
    start_s: float
    streams: bool
    cores: int
    """Of all workers."""

    @classmethod
    def of(cls, facts: Facts) -> _Work:
        steps = [step for _, members in facts.members for step in members]
        counts = [count for group, members in facts.members for count in instances_left(group, members)]
        default = facts.settings.step_runtime_s
        idle = any(one.what == "step" for group in facts.plan.groups for one in group.pruned)
        return cls(
            steps,
            counts,
            [(step.runtime_s or default) if count else 0.0 for step, count in zip(steps, counts, strict=True)],
            0.0 if idle else facts.cluster.application_start_s,
            "streaming" in {step.mode for step in steps},
            sum(worker.free_cores for worker in facts.cluster.workers),
        )


def _area(work: _Work) -> float:
    """What streams may hold its cores while its application starts."""
    rows = zip(work.steps, work.counts, work.seconds, strict=True)
    held = sum([step.cores * count * seconds for step, count, seconds in rows])
    return (0.0 if work.streams else work.start_s) + held / work.cores if work.cores and held else 0.0


def _waves(facts: Facts, work: _Work) -> list[float]:
    """Seconds of each step if it has the cluster for itself."""
    if work.streams:
        return list(work.seconds)
    lanes: dict[tuple[int, tuple[str, ...]], int] = {}
    found = list(work.seconds)
    for at, count in enumerate(work.counts):
        if count > 1:
            step = work.steps[at]
            kind = step.cores, step.pinned
            if kind not in lanes:
                allowed = [one for one in facts.cluster.workers if not step.pinned or one.id in step.pinned]
                lanes[kind] = max(1, sum(worker.free_cores // step.cores for worker in allowed))
            found[at] *= -(-count // lanes[kind])
    return found


def _path(facts: Facts, work: _Work, ends: Mapping[str, float]) -> float:
    """Units in the order of their starts, steps in the plan's: an edge that leads back does not count."""
    seconds = _waves(facts, work)
    walk = _Walk.of(facts, work, seconds)
    for name, places in _units(facts, ends):
        if name in walk.arrived:
            walk.pass_task(name)
        else:
            walk.pass_group(places)
    last = max([ahead + taken for ahead, taken in zip(walk.head, seconds, strict=True)], default=0.0)
    return max([last, *walk.arrived.values()])


def _units(facts: Facts, ends: Mapping[str, float]) -> list[tuple[str, range]]:
    """Groups with the places of their steps, and ordinary tasks."""
    found: list[tuple[float, str, range]] = []
    first = 0
    for group in facts.plan.groups:
        found.append((group.start_s, group.id, range(first, first + len(group.steps))))
        first += len(group.steps)
    found += [(ends.get(name, 0.0) - lasting_s(facts, name), name, range(0)) for name in facts.tasks]
    return [(name, places) for _, name, places in sorted(found, key=itemgetter(0))]


@dataclass(frozen=True, slots=True)
class _Walk:
    """How long it takes to each step and task at least, from unit to unit."""

    facts: Facts
    steps: Sequence[Step]
    start_s: float
    seconds: Sequence[float]
    """Of each step."""
    before: Sequence[float]
    """Of each step, as they count before another step."""
    head: list[float]
    """Until each step may begin."""
    arrived: dict[str, float]
    """Until each task may begin, then until it ends."""
    place: Mapping[str, int]
    beyond: Mapping[str, Sequence[str]]
    """What waits for a step or a task, steps of the same group left aside."""

    @classmethod
    def of(cls, facts: Facts, work: _Work, seconds: Sequence[float]) -> _Walk:
        counted = [0.0 if step.repeat else taken for step, taken in zip(work.steps, seconds, strict=True)]
        beyond: dict[str, list[str]] = {}
        channels = ((one.src, one.dst) for one in facts.edges.crossing)
        dependencies = (one for one in facts.dataflow.dependencies if facts.unit(one[0]) != facts.unit(one[1]))
        for src, dst in chain(channels, dependencies):
            beyond.setdefault(src, []).append(dst)
        return cls(
            facts,
            work.steps,
            work.start_s,
            seconds,
            [0.0] * len(counted) if work.streams else counted,
            [work.start_s] * len(counted),
            dict.fromkeys(facts.tasks, 0.0),
            {step.id: at for at, step in enumerate(work.steps)} if beyond else {},
            beyond,
        )

    def pass_group(self, places: range) -> None:
        head, later, before = self.head, self.facts.edges.later, self.before
        for at in places:
            end = head[at] + before[at]
            for there in later[at]:
                if end > head[there]:  # noqa: PLR1730  a call of max here costs a third of this walk
                    head[there] = end
            if self.beyond:
                self._hand_over(self.steps[at].id, end, head[at] + self.seconds[at])

    def pass_task(self, name: str) -> None:
        self.arrived[name] += lasting_s(self.facts, name)
        self._hand_over(name, self.arrived[name] + self.start_s, self.arrived[name])

    def _hand_over(self, name: str, to_steps_s: float, to_tasks_s: float) -> None:
        for after in self.beyond.get(name, ()):
            at = self.place.get(after)
            if at is None:
                self.arrived[after] = max(self.arrived.get(after, 0.0), to_tasks_s)
            elif to_steps_s > self.head[at]:
                self.head[at] = to_steps_s
