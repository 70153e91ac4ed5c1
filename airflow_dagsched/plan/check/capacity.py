"""Containers are equal within a group, and fit on their workers, also side by side in time."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Group

Amounts = tuple[int, int, int]
"""Cores, memory and disk."""
DIMENSIONS = ("cores", "memory_mb", "disk_mb")
_mode = attrgetter("mode")


def check_capacity(facts: Facts) -> Iterator[Violation]:
    """Residency, equal shapes, known workers, and room on each worker at every moment."""
    for group, steps in facts.members:
        yield from _residency(group, steps)
        yield from _equal(group)
    yield from _unknown_workers(facts)
    yield from _overload(facts)


def _residency(group: Group, steps: list[Step]) -> Iterator[Violation]:
    streams = "streaming" in map(_mode, steps)
    if streams and group.residency != "all":
        yield Violation("residency", group.id, "has streaming steps: they hold their resources from start to end")
    if steps and not streams and group.residency == "all":
        yield Violation("residency", group.id, "has no streaming step: its instances run in slots, not all at once")


def _equal(group: Group) -> Iterator[Violation]:
    shapes = sorted({(box.cores, box.memory_mb) for box in group.containers})
    if len(shapes) > 1:
        yield Violation("shape", group.id, f"containers differ in (cores, memory_mb): {shapes[0]}, {shapes[1]}")


def _unknown_workers(facts: Facts) -> Iterator[Violation]:
    for group in facts.plan.groups:
        for box in group.containers:
            if box.worker not in facts.workers:
                yield Violation("worker", box.id, f"is on {box.worker!r}, which is no worker of the cluster")


def _overload(facts: Facts) -> Iterator[Violation]:
    """What ends at a moment makes room for what starts at it."""
    moments: dict[str, list[tuple[float, int, Amounts, str]]] = {}
    for group in facts.plan.groups:
        for worker, amounts in held_by(group):
            moments.setdefault(worker, []).append((group.start_s, 1, amounts, group.id))
            moments[worker].append((group.end_s, 0, amounts, group.id))
    for worker, found in sorted(moments.items()):
        if worker in facts.workers:
            yield from _overloads(facts.workers[worker], found)


def _overloads(worker: Worker, moments: list[tuple[float, int, Amounts, str]]) -> Iterator[Violation]:
    held = [0, 0, 0]
    room = worker.free_cores, worker.free_memory_mb, worker.free_disk_mb
    for when, starts, amounts, group in sorted(moments):
        for at, dimension in enumerate(DIMENSIONS):
            held[at] += amounts[at] if starts else -amounts[at]
            limit = room[at]
            if starts and limit is not None and held[at] > limit:
                text = f"{dimension} held {held[at]} at {when:g} s with group {group!r}, free {limit}"
                yield Violation("capacity", worker.id, text)


def held_by(group: Group) -> Iterator[tuple[str, Amounts]]:
    """Worker and amounts of each container, and of a driver program that is on a worker."""
    for box in group.containers:
        yield box.worker, (box.cores, box.memory_mb, box.disk_mb)
    if group.driver.worker is not None:
        yield group.driver.worker, (group.driver.cores, group.driver.memory_mb, 0)
