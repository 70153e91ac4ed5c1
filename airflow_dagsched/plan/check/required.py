"""What a container needs is worked out anew from what it holds.

    slots   c1 [a a b]    the largest so many instances that its cores run at once; all their disk
    all     c1 [a a b]    the sum
                          memory with the padding, once a container

What a step does not declare is as the settings say. Of a group that a policy placed, the policy's own settings say what
its padding is, and what is not declared: there a container holds at least what its steps declare.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter, le

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.check.room import DIMENSIONS, Amounts
from airflow_dagsched.plan.check.running import instances_left
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.values import Container, Group

_amounts, _step, _cores, _memory, _disk = attrgetter(*DIMENSIONS), itemgetter(0), *map(attrgetter, DIMENSIONS)


def check_required(facts: Facts) -> Iterator[Violation]:
    """Containers hold something, ask for what they require, and require what they need."""
    for group, steps in facts.members:
        for box in group.containers:
            if not (box.instances or box.standbys or box.warmups) and group.progress == "planned":
                yield Violation("capacity", box.id, "holds no instance and no copy of state")
            needed, told, asked = _needed(facts, group, steps, box), _amounts(box.required), _amounts(box)
            if needed != told or not all(map(le, told, asked)):
                yield from _told(group, box, needed)
        if len(group.containers) > 1 and group.progress == "planned" and not group.placement:
            yield from _whichever(facts, group, steps)


def _told(group: Group, box: Container, needed: Amounts) -> Iterator[Violation]:
    exact = group.progress == "planned" and not group.placement
    for dimension, least, told, has in zip(DIMENSIONS, needed, _amounts(box.required), _amounts(box), strict=True):
        if max(least, told) > has:
            yield Violation("capacity", box.id, f"{dimension} needed {max(least, told)}, asked {has}")
        elif exact and least != told:
            yield Violation("capacity", box.id, f"{dimension} needed {least}, required by the plan {told}")


def _needed(facts: Facts, group: Group, steps: Sequence[Step], box: Container) -> Amounts:
    """What has begun was sized for what was known when it started."""
    if group.progress != "planned":
        return 0, 0, 0
    held = _held_steps(facts, steps, box)
    if group.placement:
        kept = _kept(facts, box)
        cores, memory, disk = _held(group, box.cores, held, (0, 0))
        return cores, memory + kept[0], disk + kept[1]
    default = facts.settings.step_memory_mb, facts.settings.step_disk_mb
    cores, memory, disk = _held(group, box.cores, held, default)
    return cores, _padded(memory, facts.settings), disk


def _held_steps(facts: Facts, steps: Sequence[Step], box: Container) -> Sequence[Step]:
    """The step of each instance, of those that the dataflow has; ``steps``: of the group."""
    if len(steps) == 1:
        return [*steps] * len(box.instances)
    found = list(map(facts.steps.get, map(_step, box.instances)))
    return [step for step in found if step is not None]


def _held(group: Group, cores: int, steps: Sequence[Step], default: tuple[int, int]) -> Amounts:
    """``cores``: of the container; ``default``: memory and disk of an instance that declares none."""
    widths = list(map(_cores, steps))
    memory = [one or default[0] for one in map(_memory, steps)]
    disk = sum([one or default[1] for one in map(_disk, steps)])
    if group.residency == "all" or not steps:
        return sum(widths), sum(memory), disk
    widest = max(widths) if group.placement else min(cores, sum(widths))
    at_once = max(1, cores // min(widths))
    return widest, sum(memory if len(memory) <= at_once else heapq.nlargest(at_once, memory)), disk


def _padded(memory_mb: int, settings: Settings) -> int:
    """MiB of a container that holds ``memory_mb``."""
    return memory_mb + max(settings.padding_min_mb, math.ceil(memory_mb * settings.padding_fraction))


def _kept(facts: Facts, box: Container) -> tuple[int, int]:
    """Copies of state: their memory, of which the step's own is the bound where it is not declared, and disk."""
    copies = [facts.steps[name] for name, _ in (*box.standbys, *box.warmups) if name in facts.steps]
    return sum(step.state_mb or step.memory_mb for step in copies), sum(step.disk_mb for step in copies)


def _whichever(facts: Facts, group: Group, steps: Sequence[Step]) -> Iterator[Violation]:
    """Spark, not the plan, deals a batch group's tasks to its executors: each must be able to hold the largest."""
    if group.residency == "all":
        return
    box, default = group.containers[0], facts.settings.step_memory_mb
    run = [(step, count) for step, count in zip(steps, instances_left(group, steps), strict=True) if count]
    if not run:
        return
    left = max(1, box.cores // min([step.cores for step, _ in run]))
    needed = _padded(_largest([(step.memory_mb or default, count) for step, count in run], left), facts.settings)
    if box.memory_mb < needed:
        text = f"containers ask for {box.memory_mb} MiB: the largest instances need {needed} at once"
        yield Violation("capacity", group.id, text)


def _largest(pairs: Sequence[tuple[int, int]], left: int) -> int:
    """MiB of the ``left`` largest instances; ``pairs``: memory of one, and how many there are."""
    total = 0
    for memory, count in heapq.nlargest(left, pairs):
        total += memory * min(left, count)
        left -= min(left, count)
    return total
