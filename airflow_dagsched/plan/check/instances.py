"""Every active step instance is in exactly one container, in its group, on a worker it may be on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Group, Instance

_pinned = attrgetter("pinned")


def check_instances(facts: Facts) -> Iterator[Violation]:
    """Nothing lost, nothing twice, nothing where it must not be; what is pruned is nowhere."""
    for group, steps in facts.members:
        found = [one for box in group.containers for one in box.instances]
        fewer = group.pruned and any(one.what in ("step", "instance") for one in group.pruned)
        if fewer or not _is_whole(steps, found):
            yield from _differing(group, Counter(found), set(_active(group, steps)))
        if any(map(_pinned, steps)) and group.progress != "finished":  # a finished group's own worker may be gone
            yield from _pins(group, {step.id: step.pinned for step in steps if step.pinned})


def _is_whole(steps: Sequence[Step], found: Sequence[Instance]) -> bool:
    """Whether each step's instances are there, once each: so many different ones, none of which is another's."""
    widths = {step.id: step.parallelism for step in steps}
    if not len(found) == len(set(found)) == sum(widths.values()):
        return False
    return all(0 <= index < widths.get(name, 0) for name, index in found)


def _active(group: Group, steps: Sequence[Step]) -> Iterator[Instance]:
    """All that are not pruned."""
    idle = {one.id for one in group.pruned if one.what == "step"}
    gone = {one.id for one in group.pruned if one.what == "instance"}
    fewer = {name.rpartition("/")[0] for name in gone}
    for name, width in [(step.id, step.parallelism) for step in steps if step.id not in idle]:
        for index in range(width):
            if name not in fewer or f"{name}/{index}" not in gone:
                yield name, index


def _differing(group: Group, found: Counter[Instance], wanted: AbstractSet[Instance]) -> Iterator[Violation]:
    for step, index in sorted(wanted - found.keys()):
        yield Violation("instances", f"{step}/{index}", f"is in no container of {group.id!r}")
    for (step, index), count in sorted([one for one in found.items() if one[1] > 1 or one[0] not in wanted]):
        if (step, index) not in wanted:
            yield Violation("instances", f"{step}/{index}", f"is in {group.id!r}, which has no such active instance")
        else:
            yield Violation("instances", f"{step}/{index}", f"is in {count} containers")


def _pins(group: Group, pins: Mapping[str, tuple[str, ...]]) -> Iterator[Violation]:
    """``pins``: step -> the workers it may be on."""
    for box in group.containers:
        for name in dict.fromkeys(step for step, _ in box.instances if step in pins):
            if box.worker not in pins[name]:
                yield Violation("pinned", name, f"is on {box.worker!r}, pinned to {', '.join(sorted(pins[name]))}")
