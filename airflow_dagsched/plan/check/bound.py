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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.check.running import instances_left, lasting_s

TOLERANCE_S = 1e-3


def check_bound(facts: Facts, ends: Sequence[float]) -> Iterator[Violation]:
    """``ends``: of groups as predicted, of ordinary tasks the earliest.

    Part-way through a run the bound is that of what is left, from a moment on that the plan does not say.
    """
    plan = facts.plan
    if plan.lower_bound_s and not plan.lower_bound_reason:
        yield Violation("reason", "lower_bound_s", "says nothing")
    if facts.part_way or any(len(group.steps) > len(steps) for group, steps in facts.members):
        return
    work = _Work.of(facts)
    for what, found in (("path", _path(facts, work)), ("core-seconds", _area(work))):
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


def _path(facts: Facts, work: _Work) -> float:
    """Units in the order of their starts, steps in the plan's: an edge that leads back does not count."""
    seconds = _waves(facts, work)
    head = _heads(facts, work, seconds)
    last = max([ahead + taken for ahead, taken in zip(head, seconds, strict=False)], default=0.0)
    return max([last, *head[len(seconds) :]])


def _heads(facts: Facts, work: _Work, seconds: Sequence[float]) -> list[float]:
    """How long it takes until each step may begin, and until each task ends."""
    edges, groups = facts.edges, facts.plan.groups
    before = [0.0 if work.streams or step.repeat else taken for step, taken in zip(work.steps, seconds, strict=True)]
    head = [work.start_s] * len(seconds) + [0.0] * len(facts.tasks)
    places = _places(facts)
    for unit in edges.order:
        for at in places[unit]:
            if unit >= len(groups):
                head[at] += lasting_s(facts, facts.units[unit])
                to_step, to_task = head[at] + work.start_s, head[at]
            else:
                to_step, to_task = head[at] + before[at], head[at] + seconds[at]
            for there in edges.later[at]:
                if to_step > head[there]:  # noqa: PLR1730  a call of max here costs a third of this walk
                    head[there] = to_step
            for there in edges.beyond[at] if edges.beyond else ():
                head[there] = max(head[there], to_step if there < len(seconds) else to_task)
    return head


def _places(facts: Facts) -> list[range]:
    """Of the steps of each group, then of each ordinary task."""
    ends = list(accumulate([len(group.steps) for group in facts.plan.groups] + [1] * len(facts.tasks), initial=0))
    return [range(first, end) for first, end in pairwise(ends)]
