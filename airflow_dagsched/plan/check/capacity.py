"""Containers hold what they need, are equal within a group, and fit on their workers, also side by side in time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Container, Group, Instance

Amounts = tuple[int, int, int]
"""Cores, memory and disk."""
DIMENSIONS = ("cores", "memory_mb", "disk_mb")
_cores, _memory, _disk = map(attrgetter, DIMENSIONS)
_mode, _step = attrgetter("mode"), itemgetter(0)


def check_capacity(facts: Facts) -> Iterator[Violation]:
    """Residency, needs, equal shapes, known workers, and room on each worker at every moment."""
    for group, steps in facts.members:
        yield from _residency(group, steps)
        yield from _equal(group)
        for box in group.containers:
            yield from _holds(facts, group, box)
    yield from _unknown_workers(facts)
    yield from _overload(facts)


def _residency(group: Group, steps: list[Step]) -> Iterator[Violation]:
    if "streaming" in map(_mode, steps) and group.residency != "all":
        yield Violation("residency", group.id, "has streaming steps: they hold their resources from start to end")


def _equal(group: Group) -> Iterator[Violation]:
    shapes = sorted({(box.cores, box.memory_mb) for box in group.containers})
    if len(shapes) > 1:
        yield Violation("shape", group.id, f"containers differ in (cores, memory_mb): {shapes[0]}, {shapes[1]}")


def _holds(facts: Facts, group: Group, box: Container) -> Iterator[Violation]:
    asked = box.cores, box.memory_mb, box.disk_mb
    begun = group.progress != "planned"  # it was sized for what was known when it started
    steps = [] if begun else _known(facts, box.instances)
    runs = _resident(steps) if group.residency == "all" else _in_slots(steps, box.cores)
    kept = _kept(_known(facts, (*box.standbys, *box.warmups)))
    declared = runs[0], runs[1] + kept[1], runs[2] + kept[2]
    required = box.required.cores, box.required.memory_mb, box.required.disk_mb
    for dimension, least, needed, has in zip(DIMENSIONS, declared, required, asked, strict=True):
        if max(least, needed) > has:
            yield Violation("capacity", box.id, f"{dimension} needed {max(least, needed)}, asked {has}")


def _known(facts: Facts, instances: Sequence[Instance]) -> list[Step]:
    """The step of each instance, of those that the dataflow has."""
    return [step for step in map(facts.steps.get, map(_step, instances)) if step is not None]


def _resident(steps: list[Step]) -> Amounts:
    return sum(map(_cores, steps)), sum(map(_memory, steps)), sum(map(_disk, steps))


def _kept(steps: list[Step]) -> Amounts:
    """A copy of state: its memory, of which the step's own is the bound where it is not declared; no cores."""
    return 0, sum(s.state_mb or s.memory_mb for s in steps), sum(s.disk_mb for s in steps)


def _in_slots(steps: list[Step], cores: int) -> Amounts:
    """Instances run in waves: the widest must fit, and the largest as many as the cores allow at once."""
    if not steps:
        return 0, 0, 0
    waves = max(1, cores // min(map(_cores, steps)))
    memory = sum(heapq.nlargest(waves, map(_memory, steps)))
    return max(map(_cores, steps)), memory, sum(map(_disk, steps))


def _unknown_workers(facts: Facts) -> Iterator[Violation]:
    for group in facts.plan.groups:
        for box in group.containers:
            if box.worker not in facts.workers:
                yield Violation("worker", box.id, f"is on {box.worker!r}, which is no worker of the cluster")


def _overload(facts: Facts) -> Iterator[Violation]:
    """What ends at a moment makes room for what starts at it."""
    moments: dict[str, list[tuple[float, int, Amounts, str]]] = {}
    for group in facts.plan.groups:
        for worker, amounts in _held(group):
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


def _held(group: Group) -> Iterator[tuple[str, Amounts]]:
    for box in group.containers:
        yield box.worker, (box.cores, box.memory_mb, box.disk_mb)
    if group.driver.worker is not None:
        yield group.driver.worker, (group.driver.cores, group.driver.memory_mb, 0)
