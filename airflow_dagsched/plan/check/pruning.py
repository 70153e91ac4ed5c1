"""What a group leaves out is its to leave out: nothing of a stream, no step that works without input."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Group, Pruned


def check_pruning(facts: Facts) -> Iterator[Violation]:
    """Pruned steps, workers and partitions, against what the author declared and what the plan uses."""
    for group in facts.plan.groups:
        if group.pruned and _streams(facts, group):
            yield Violation("pruned", group.id, "has streaming steps: nothing of it may be left out")
        yield from _steps(facts, group)
        yield from _used(group)


def _streams(facts: Facts, group: Group) -> bool:
    return any(facts.steps[name].mode == "streaming" for name in group.steps if name in facts.steps)


def _steps(facts: Facts, group: Group) -> Iterator[Violation]:
    for one in _of(group, "step"):
        step = facts.steps.get(one.id) if one.id in group.steps else None
        if step is None:
            yield Violation("pruned", one.id, f"is left out of {group.id!r}, which has no such step")
        elif step.works_without_input:
            yield Violation("pruned", one.id, "is left out, but works without input")


def _used(group: Group) -> Iterator[Violation]:
    """What is left out and used all the same."""
    workers = {one.id for one in _of(group, "worker")}
    for box in group.containers:
        if box.worker in workers:
            yield Violation("pruned", box.id, f"is on {box.worker!r}, which the group leaves out")
    partitions = {one.id for one in _of(group, "partition")}
    for step, keys in sorted(group.partitions.items()):
        for key in keys:
            if f"{step}/{key}" in partitions:
                yield Violation("pruned", step, f"reads partition {key}, which it leaves out")


def _of(group: Group, what: str) -> Iterator[Pruned]:
    return (one for one in group.pruned if one.what == what)
