"""Every active step instance is in exactly one container, in its group, on a worker it may be on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Group, Instance


def check_instances(facts: Facts) -> Iterator[Violation]:
    """Nothing lost, nothing twice, nothing where it must not be; what is pruned is nowhere."""
    for group, steps in facts.members:
        yield from _once(facts, group)
        if group.progress != "finished":  # of which any worker is told where its own is gone
            yield from _pins(group, steps)


def _once(facts: Facts, group: Group) -> Iterator[Violation]:
    if all(one.what not in ("step", "instance") for one in group.pruned) and _complete(facts, group):
        return
    found: Counter[Instance] = Counter(instance for box in group.containers for instance in box.instances)
    wanted = set(_active(facts, group))
    for step, index in sorted(wanted - found.keys()):
        yield Violation("instances", f"{step}/{index}", f"is in no container of {group.id!r}")
    for (step, index), count in sorted(found.items()):
        if (step, index) not in wanted:
            yield Violation("instances", f"{step}/{index}", f"is in {group.id!r}, which has no such active instance")
        elif count > 1:
            yield Violation("instances", f"{step}/{index}", f"is in {count} containers")


def _complete(facts: Facts, group: Group) -> bool:
    """Whether each step's instances are there, once each: what most plans are asked, quickly."""
    if not all(map(facts.steps.__contains__, group.steps)):
        return False
    counts = {name: facts.steps[name].parallelism for name in group.steps}
    found = [instance for box in group.containers for instance in box.instances]
    if not len(found) == len(set(found)) == sum(counts.values()):
        return False
    return all(0 <= index < counts.get(name, 0) for name, index in found)


def _active(facts: Facts, group: Group) -> Iterator[Instance]:
    steps = {one.id for one in group.pruned if one.what == "step"}
    gone = {one.id for one in group.pruned if one.what == "instance"}
    fewer = {name.rpartition("/")[0] for name in gone}
    for name in group.steps:
        if name in facts.steps and name not in steps:
            for index in range(facts.steps[name].parallelism):
                if name not in fewer or f"{name}/{index}" not in gone:
                    yield name, index


def _pins(group: Group, steps: list[Step]) -> Iterator[Violation]:
    pins = {step.id: step.pinned for step in steps if step.pinned}
    for box in group.containers if pins else ():
        for name in dict.fromkeys(step for step, _ in box.instances if step in pins):
            pinned = pins[name]
            if box.worker not in pinned:
                yield Violation("pinned", name, f"is on {box.worker!r}, pinned to {', '.join(sorted(pinned))}")
