"""Containers are equal within a group, and fit on their workers, also side by side in time."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.check.room import DIMENSIONS, Free, give_back, room_of, take
from airflow_dagsched.plan.values import Group

_mode = attrgetter("mode")


def check_capacity(facts: Facts) -> Iterator[Violation]:
    """Residency, equal shapes, known workers, and room on each worker at every moment."""
    for group, steps in facts.members:
        if steps and ("streaming" in map(_mode, steps)) != (group.residency == "all"):
            yield _residency(group)
        if len(group.containers) > 1:
            yield from _equal(group)
        for box in group.containers:
            if box.worker not in facts.workers:
                yield Violation("worker", box.id, f"is on {box.worker!r}, which is no worker of the cluster")
    yield from _overload(facts)


def _residency(group: Group) -> Violation:
    if group.residency == "all":
        return Violation("residency", group.id, "has no streaming step: its instances run in slots, not all at once")
    return Violation("residency", group.id, "has streaming steps: they hold their resources from start to end")


def _equal(group: Group) -> Iterator[Violation]:
    shapes = sorted({(box.cores, box.memory_mb) for box in group.containers})
    if len(shapes) > 1:
        yield Violation("shape", group.id, f"containers differ in (cores, memory_mb): {shapes[0]}, {shapes[1]}")


def _overload(facts: Facts) -> Iterator[Violation]:
    """What ends at a moment makes room for what starts at it."""
    groups, held, free = facts.plan.groups, facts.held, room_of(facts.cluster)
    starts, ends = ([getattr(group, name) for group in groups] for name in ("start_s", "end_s"))
    ending = sorted(range(len(groups)), key=ends.__getitem__, reverse=True)
    for at in sorted(range(len(groups)), key=starts.__getitem__):
        while ending and ends[ending[-1]] <= starts[at]:
            give_back(free, held[ending.pop()])
        if not take(free, held[at]):
            yield from _too_much(facts, free, at)


def _too_much(facts: Facts, free: Free, at: int) -> Iterator[Violation]:
    """``free``: what is left with the group."""
    group, whole = facts.plan.groups[at], room_of(facts.cluster)
    for worker in dict(facts.held[at]):
        for dimension, left, room in zip(DIMENSIONS, free.get(worker, ()), whole.get(worker, ()), strict=True):
            if left < 0:
                text = f"{dimension} held {room - left} at {group.start_s:g} s with group {group.id!r}, free {room}"
                yield Violation("capacity", worker, text)
