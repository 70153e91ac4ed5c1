"""What a group leaves out is its to leave out: nothing of a stream, no step that works without input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.check.partitions import check_partitions
from airflow_dagsched.plan.values import Group, Pruned


def check_pruning(facts: Facts) -> Iterator[Violation]:
    """Pruned steps, workers, instances and partitions, against what the author declared and what the plan uses."""
    for group in facts.plan.groups:
        if group.pruned:
            if _streams(facts, group):
                yield Violation("pruned", group.id, "has streaming steps: nothing of it may be left out")
            yield from _steps(facts, group)
            yield from _instances(facts, group)
            yield from _used(group)
            yield from _workers(facts, group)
        if group.partitions:
            yield from check_partitions(facts, group)


def _streams(facts: Facts, group: Group) -> bool:
    return any(facts.steps[name].mode == "streaming" for name in group.steps if name in facts.steps)


def _steps(facts: Facts, group: Group) -> Iterator[Violation]:
    gone = {one.id for one in _of(group, "step")}
    for name in sorted(gone):
        step = facts.steps.get(name) if name in group.steps else None
        if step is None:
            yield Violation("pruned", name, f"is left out of {group.id!r}, which has no such step")
        elif step.works_without_input:
            yield Violation("pruned", name, "is left out, but works without input")
        elif step.repeat:
            yield Violation("pruned", name, "is left out of a loop: its steps run together")
        if name in group.partitions:
            yield Violation("pruned", name, "is left out, but reads partitions")
    if gone.issuperset(group.steps) and group.steps and (group.containers or group.end_s > group.start_s):
        yield Violation("pruned", group.id, "has nothing left to do, but takes containers or time")


def _instances(facts: Facts, group: Group) -> Iterator[Violation]:
    """One that is left out was there; of a step that runs, one at least stays."""
    gone = Counter(one.id for one in _of(group, "instance"))
    if not gone:
        return
    there = {f"{name}/{at}": name for name in group.steps if name in facts.steps for at in range(_width(facts, name))}
    for name, count in sorted(gone.items()):
        step = facts.steps.get(there.get(name, ""))
        if step is None or count > 1:
            yield Violation("pruned", name, f"is left out of {group.id!r} {count} times, which has it once at most")
        elif step.works_without_input and not step.sources:
            yield Violation("pruned", name, "is left out, but works without input, and reads no source")
    left = Counter(there.values())
    left.subtract(there[name] for name in gone if name in there)
    for name, count in sorted(left.items()):
        if not count:
            yield Violation("pruned", name, "has all its instances left out, but runs")


def _width(facts: Facts, name: str) -> int:
    return facts.steps[name].parallelism


def _workers(facts: Facts, group: Group) -> Iterator[Violation]:
    for one in _of(group, "worker"):
        if one.id not in facts.workers:
            yield Violation("pruned", one.id, f"is left out of {group.id!r}, but is no worker of the cluster")


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
