"""Every active step instance is in exactly one container, in its group, on a worker it may be on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Group, Instance


def check_instances(facts: Facts) -> Iterator[Violation]:
    """Nothing lost, nothing twice, nothing where it must not be; what is pruned is nowhere."""
    for group in facts.plan.groups:
        yield from _once(facts, group)
        yield from _pins(facts, group)


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
    found: dict[str, list[int]] = {name: [] for name in group.steps}
    for box in group.containers:
        for name, index in box.instances:
            if name not in found:
                return False
            found[name].append(index)
    return all(name in facts.steps and _all(indices, facts.steps[name].parallelism) for name, indices in found.items())


def _all(indices: list[int], count: int) -> bool:
    return indices == [0] if count == 1 else sorted(indices) == list(range(count))


def _active(facts: Facts, group: Group) -> Iterator[Instance]:
    steps = {one.id for one in group.pruned if one.what == "step"}
    gone = {one.id for one in group.pruned if one.what == "instance"}
    fewer = {name.rpartition("/")[0] for name in gone}
    for name in group.steps:
        if name in facts.steps and name not in steps:
            for index in range(facts.steps[name].parallelism):
                if name not in fewer or f"{name}/{index}" not in gone:
                    yield name, index


def _pins(facts: Facts, group: Group) -> Iterator[Violation]:
    pins = {name: facts.steps[name].pinned for name in group.steps if name in facts.steps and facts.steps[name].pinned}
    for box in group.containers if pins else ():
        for name in dict.fromkeys(step for step, _ in box.instances if step in pins):
            pinned = pins[name]
            if box.worker not in pinned:
                yield Violation("pinned", name, f"is on {box.worker!r}, pinned to {', '.join(sorted(pinned))}")
