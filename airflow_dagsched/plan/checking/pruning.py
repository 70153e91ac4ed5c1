"""What a group leaves out is its to leave out: nothing of a stream, no step that works without input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.checking.partitions import check_partitions
from airflow_dagsched.plan.plan_types import Group, Pruned


def check_pruning(facts: Facts) -> Iterator[Violation]:
    """Pruned steps, workers, instances and partitions, against what the author declared and what the plan uses."""
    for group in facts.plan.groups:
        if group.pruned:
            if _is_streaming(facts, group):
                # An unbounded input is never known to be empty.
                yield Violation("pruned", group.id, "has streaming steps: nothing of it may be left out")
            yield from _check_steps(facts, group)
            yield from _check_instances(facts, group)
            yield from _check_unused(group)
            yield from _check_workers(facts, group)
        if group.partitions:
            yield from check_partitions(facts, group)


def _is_streaming(facts: Facts, group: Group) -> bool:
    return any(facts.steps[name].mode == "streaming" for name in group.steps if name in facts.steps)


def _check_steps(facts: Facts, group: Group) -> Iterator[Violation]:
    pruned = {entry.id for entry in _list_pruned(group, "step")}
    for name in sorted(pruned):
        step = facts.steps.get(name) if name in group.steps else None
        if step is None:
            yield Violation("pruned", name, f"is left out of {group.id!r}, which has no such step")
        elif step.works_without_input:
            yield Violation("pruned", name, "is left out, but works without input")
        # The condition that ends a loop may read any of its steps.
        elif step.repeat:
            yield Violation("pruned", name, "is left out of a loop: its steps run together")
        if name in group.partitions:
            yield Violation("pruned", name, "is left out, but reads partitions")
    if pruned.issuperset(group.steps) and group.steps and (group.containers or group.end_s > group.start_s):
        yield Violation("pruned", group.id, "has nothing left to do, but takes containers or time")


def _check_instances(facts: Facts, group: Group) -> Iterator[Violation]:
    """One that is left out was there; of a step that runs, one at least stays."""
    pruned = Counter(entry.id for entry in _list_pruned(group, "instance"))
    if not pruned:
        return
    there = {
        f"{name}/{at}": name
        for name in group.steps
        if name in facts.steps
        for at in range(_count_declared(facts, name))
    }
    for name, count in sorted(pruned.items()):
        step = facts.steps.get(there.get(name, ""))
        if step is None or count > 1:
            yield Violation("pruned", name, f"is left out of {group.id!r} {count} times, which has it once at most")
        # A scan may have fewer instances: Spark makes no task without a split. Others may do work even without rows.
        elif step.works_without_input and not step.sources:
            yield Violation("pruned", name, "is left out, but works without input, and reads no source")
    running = Counter(there.values())
    # Else a step would count as done that never ran.
    running.subtract(there[name] for name in pruned if name in there)
    for name, count in sorted(running.items()):
        if not count:
            yield Violation("pruned", name, "has all its instances left out, but runs")


def _count_declared(facts: Facts, name: str) -> int:
    return facts.steps[name].parallelism


def _check_workers(facts: Facts, group: Group) -> Iterator[Violation]:
    # What has begun left it out while it was there.
    if group.progress != "planned":
        return
    for entry in _list_pruned(group, "worker"):
        if entry.id not in facts.workers:
            yield Violation("pruned", entry.id, f"is left out of {group.id!r}, but is no worker of the cluster")


def _check_unused(group: Group) -> Iterator[Violation]:
    """What is left out and used all the same."""
    workers = {entry.id for entry in _list_pruned(group, "worker")}
    for container in group.containers:
        if container.worker in workers:
            yield Violation("pruned", container.id, f"is on {container.worker!r}, which the group leaves out")
    partitions = {entry.id for entry in _list_pruned(group, "partition")}
    for step, keys in sorted(group.partitions.items()):
        for key in keys:
            if f"{step}/{key}" in partitions:
                yield Violation("pruned", step, f"reads partition {key}, which it leaves out")


def _list_pruned(group: Group, what: str) -> Iterator[Pruned]:
    return (entry for entry in group.pruned if entry.what == what)
