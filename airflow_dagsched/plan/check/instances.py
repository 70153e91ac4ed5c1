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
    found: Counter[Instance] = Counter()
    for box in group.containers:
        found.update(box.instances)
    wanted = set(_active(facts, group))
    if len(wanted) == found.total() and wanted == found.keys():
        return
    for step, index in sorted(wanted - found.keys()):
        yield Violation("instances", f"{step}/{index}", f"is in no container of {group.id!r}")
    for (step, index), count in sorted(found.items()):
        if (step, index) not in wanted:
            yield Violation("instances", f"{step}/{index}", f"is in {group.id!r}, which has no such active instance")
        elif count > 1:
            yield Violation("instances", f"{step}/{index}", f"is in {count} containers")


def _active(facts: Facts, group: Group) -> Iterator[Instance]:
    pruned = {(pruned.what, pruned.id) for pruned in group.pruned}
    for name in group.steps:
        if name in facts.steps and ("step", name) not in pruned:
            for index in range(facts.steps[name].parallelism):
                if not pruned or ("instance", f"{name}/{index}") not in pruned:
                    yield name, index


def _pins(facts: Facts, group: Group) -> Iterator[Violation]:
    pins = {name: facts.steps[name].pinned for name in group.steps if name in facts.steps and facts.steps[name].pinned}
    for box in group.containers if pins else ():
        for name in dict.fromkeys(step for step, _ in box.instances if step in pins):
            pinned = pins[name]
            if box.worker not in pinned:
                yield Violation("pinned", name, f"is on {box.worker!r}, pinned to {', '.join(sorted(pinned))}")
