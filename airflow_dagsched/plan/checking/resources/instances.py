"""Every active step instance is in exactly one container, in its group, on a worker it may be on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.plan_types import Group, Instance

_pinned = attrgetter("pinned")


def check_instances(facts: Facts) -> Iterator[Violation]:
    """Nothing lost, nothing twice, nothing where it must not be; what is pruned is nowhere."""
    for group, steps in facts.members:
        placed = [entry for container in group.containers for entry in container.instances]
        fewer = group.pruned and any(entry.what in ("step", "instance") for entry in group.pruned)
        # Counting what each step has is cheap; the sets below are for plans that are wrong or pruned.
        if fewer or not _is_whole(steps, placed):
            yield from _compare_instances(group, Counter(placed), set(_list_active(group, steps)))
        if any(map(_pinned, steps)):
            yield from _check_pins(group, {step.id: step.pinned for step in steps if step.pinned})


def _is_whole(steps: Sequence[Step], placed: Sequence[Instance]) -> bool:
    """Whether each step's instances are there, once each: so many different ones, none of which is another's."""
    widths = {step.id: step.parallelism for step in steps}
    if not len(placed) == len(set(placed)) == sum(widths.values()):
        return False
    return all(0 <= index < widths.get(name, 0) for name, index in placed)


def _list_active(group: Group, steps: Sequence[Step]) -> Iterator[Instance]:
    """All that are not pruned."""
    idle = {entry.id for entry in group.pruned if entry.what == "step"}
    pruned = {entry.id for entry in group.pruned if entry.what == "instance"}
    fewer = {name.rpartition("/")[0] for name in pruned}
    for name, width in [(step.id, step.parallelism) for step in steps if step.id not in idle]:
        for index in range(width):
            # The text is made only for steps that have lost some: a step may have 100,000 instances.
            if name not in fewer or f"{name}/{index}" not in pruned:
                yield name, index


def _compare_instances(group: Group, placed: Counter[Instance], wanted: AbstractSet[Instance]) -> Iterator[Violation]:
    for step, index in sorted(wanted - placed.keys()):
        yield Violation("instances", f"{step}/{index}", f"is in no container of {group.id!r}")
    for (step, index), count in sorted([entry for entry in placed.items() if entry[1] > 1 or entry[0] not in wanted]):
        if (step, index) not in wanted:
            yield Violation("instances", f"{step}/{index}", f"is in {group.id!r}, which has no such active instance")
        else:
            yield Violation("instances", f"{step}/{index}", f"is in {count} containers")


def _check_pins(group: Group, pins: Mapping[str, tuple[str, ...]]) -> Iterator[Violation]:
    """``pins``: step -> the workers it may be on."""
    for container in group.containers:
        for name in dict.fromkeys(step for step, _ in container.instances if step in pins):
            if container.worker not in pins[name]:
                yield Violation(
                    "pinned", name, f"is on {container.worker!r}, pinned to {', '.join(sorted(pins[name]))}"
                )
