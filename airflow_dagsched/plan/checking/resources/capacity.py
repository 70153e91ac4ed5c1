"""Containers are equal within a group, and fit on their workers, also side by side in time."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from airflow_dagsched.plan.checking.facts.free_capacity import (
    APPLICATIONS,
    DIMENSIONS,
    Free,
    measure_free,
    return_capacity,
    take_capacity,
)
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.plan_types import Group

_mode = attrgetter("mode")


def check_capacity(facts: Facts) -> Iterator[Violation]:
    """Residency, equal shapes, known workers, and room on each worker at every moment."""
    for group, steps in facts.members:
        # A single streaming step makes all of its group resident: slots that it never gives back would starve the
        # others.
        if steps and ("streaming" in map(_mode, steps)) != (group.residency == "all"):
            yield _explain_residency(group)
        if len(group.containers) > 1:
            yield from _check_equal_shapes(group)
        for container in group.containers:
            if container.cores and not container.instances:
                yield Violation("shape", container.id, f"holds no instance, and asks for {container.cores} cores")
            # Of what has finished it may be gone.
            if container.worker not in facts.workers and group.progress != "finished":
                yield Violation(
                    "worker", container.id, f"is on {container.worker!r}, which is no worker of the cluster"
                )
    yield from _check_overload(facts)


def _explain_residency(group: Group) -> Violation:
    if group.residency == "all":
        return Violation("residency", group.id, "has no streaming step: its instances run in slots, not all at once")
    return Violation("residency", group.id, "has streaming steps: they hold their resources from start to end")


def _check_equal_shapes(group: Group) -> Iterator[Violation]:
    # Without an instance a container is no executor: room for copies of state may be of any size.
    shapes = sorted({(container.cores, container.memory_mb) for container in group.containers if container.instances})
    if len(shapes) > 1:
        yield Violation("shape", group.id, f"containers differ in (cores, memory_mb): {shapes[0]}, {shapes[1]}")


def _check_overload(facts: Facts) -> Iterator[Violation]:
    """What ends at a moment makes room for what starts at it."""
    groups, held, free = facts.plan.groups, facts.holdings, measure_free(facts.cluster, facts.settings.applications)
    starts, ends = ([getattr(group, name) for group in groups] for name in ("start_s", "end_s"))
    ending = sorted(range(len(groups)), key=ends.__getitem__, reverse=True)
    for at in sorted(range(len(groups)), key=starts.__getitem__):
        # Exactly, without a tolerance: the planner starts a group at the very number at which another ends.
        while ending and ends[ending[-1]] <= starts[at]:
            return_capacity(free, held[ending.pop()])
        # What does not fit is taken all the same, so that the next group is told of its own excess as well.
        if not take_capacity(free, held[at]):
            yield from _explain_overload(facts, free, at)


def _explain_overload(facts: Facts, free: Free, at: int) -> Iterator[Violation]:
    """``free``: what is left with the group."""
    group, limit = facts.plan.groups[at], facts.settings.applications
    total = measure_free(facts.cluster, limit)
    # What has begun was allowed to, whatever the settings are now.
    if free.get(APPLICATIONS, (0,))[0] < 0 and group.progress == "planned":
        text = f"runs beside {limit - free[APPLICATIONS][0] - 1} others at {group.start_s:g} s, at most {limit} may run"
        yield Violation("capacity", group.id, text)
    # Each worker once, however many containers it has; one that there is not has no room to be told of.
    for worker in [where for where in dict(facts.holdings[at]) if where in facts.workers]:
        for dimension, remaining, available in zip(DIMENSIONS, free[worker], total[worker], strict=True):
            if remaining < 0:
                held = f"held {available - remaining} at {group.start_s:g} s with group {group.id!r}"
                text = f"{dimension} {held}, free {available}"
                yield Violation("capacity", worker, text)
