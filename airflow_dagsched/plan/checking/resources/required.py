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
from airflow_dagsched.plan.checking.facts.free_capacity import DIMENSIONS, Amounts
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.checking.facts.running_instances import count_instances
from airflow_dagsched.plan.plan_types import Container, Group
from airflow_dagsched.plan.settings import Settings

_amounts, _step, _cores, _memory, _disk = attrgetter(*DIMENSIONS), itemgetter(0), *map(attrgetter, DIMENSIONS)


def check_required(facts: Facts) -> Iterator[Violation]:
    """Containers hold something, ask for what they require, and require what they need."""
    for group, steps in facts.members:
        for container in group.containers:
            if not (container.instances or container.standbys or container.warmups) and group.progress == "planned":
                yield Violation("capacity", container.id, "holds no instance and no copy of state")
            needed, planned, granted = (
                _sum_needed(facts, group, steps, container),
                _amounts(container.required),
                _amounts(container),
            )
            if needed != planned or not all(map(le, planned, granted)):
                yield from _compare_amounts(group, container, needed)
        if len(group.containers) > 1 and group.progress == "planned" and not group.placement:
            # Of one container there is no other deal: what it needs has just been checked.
            yield from _check_any_deal(facts, group, steps)


def _compare_amounts(group: Group, container: Container, needed: Amounts) -> Iterator[Violation]:
    exact = group.progress == "planned" and not group.placement
    for dimension, least, planned, has in zip(
        DIMENSIONS, needed, _amounts(container.required), _amounts(container), strict=True
    ):
        if max(least, planned) > has:
            yield Violation("capacity", container.id, f"{dimension} needed {max(least, planned)}, asked {has}")
        elif exact and least != planned:
            yield Violation("capacity", container.id, f"{dimension} needed {least}, required by the plan {planned}")


def _sum_needed(facts: Facts, group: Group, steps: Sequence[Step], container: Container) -> Amounts:
    """What has begun was sized for what was known when it started."""
    if group.progress != "planned":
        return 0, 0, 0
    held = _list_held_steps(facts, steps, container)
    # The policy's padding is not in the plan: only what is held, without it, can be asked for.
    if group.placement:
        kept = _sum_copies(facts, container)
        cores, memory, disk = _sum_held(group, container.cores, held, (0, 0))
        return cores, memory + kept[0], disk + kept[1]
    default = facts.settings.step_memory_mb, facts.settings.step_disk_mb
    cores, memory, disk = _sum_held(group, container.cores, held, default)
    return cores, _pad_memory(memory, facts.settings), disk


def _list_held_steps(facts: Facts, steps: Sequence[Step], container: Container) -> Sequence[Step]:
    """The step of each instance, of those that the dataflow has; ``steps``: of the group."""
    if len(steps) == 1:
        return [*steps] * len(container.instances)
    resolved = list(map(facts.steps.get, map(_step, container.instances)))
    return [step for step in resolved if step is not None]


def _sum_held(group: Group, cores: int, steps: Sequence[Step], default: tuple[int, int]) -> Amounts:
    """``cores``: of the container; ``default``: memory and disk of an instance that declares none."""
    widths = list(map(_cores, steps))
    memory = [amount or default[0] for amount in map(_memory, steps)]
    disk = sum([amount or default[1] for amount in map(_disk, steps)])
    if group.residency == "all" or not steps:
        return sum(widths), sum(memory), disk
    # A policy may count the cores of one instance where the planner counts all that may run.
    widest = max(widths) if group.placement else min(cores, sum(widths))
    at_once = max(1, cores // min(widths))
    return widest, sum(memory if len(memory) <= at_once else heapq.nlargest(at_once, memory)), disk


def _pad_memory(memory_mb: int, settings: Settings) -> int:
    """MiB of a container that holds ``memory_mb``."""
    return memory_mb + max(settings.padding_min_mb, math.ceil(memory_mb * settings.padding_fraction))


def _sum_copies(facts: Facts, container: Container) -> tuple[int, int]:
    """Copies of state: their memory, of which the step's own is the bound where it is not declared, and disk."""
    copies = [facts.steps[name] for name, _ in (*container.standbys, *container.warmups) if name in facts.steps]
    return sum(step.state_mb or step.memory_mb for step in copies), sum(step.disk_mb for step in copies)


def _check_any_deal(facts: Facts, group: Group, steps: Sequence[Step]) -> Iterator[Violation]:
    """Spark, not the plan, deals a batch group's tasks to its executors: each must be able to hold the largest."""
    if group.residency == "all" or not group.executors:
        return
    container, default = group.executors[0], facts.settings.step_memory_mb
    run = [(step, count) for step, count in zip(steps, count_instances(group, steps), strict=True) if count]
    if not run:
        return
    # As many as the narrowest instances allow: the widest case for memory.
    slots = max(1, container.cores // min([step.cores for step, _ in run]))
    needed = _pad_memory(
        _sum_largest([(step.memory_mb or default, count) for step, count in run], slots), facts.settings
    )
    if container.memory_mb < needed:
        text = f"containers ask for {container.memory_mb} MiB: the largest instances need {needed} at once"
        yield Violation("capacity", group.id, text)


def _sum_largest(pairs: Sequence[tuple[int, int]], slots: int) -> int:
    """MiB of the ``slots`` largest instances; ``pairs``: memory of one, and how many there are."""
    total = 0
    for memory, count in heapq.nlargest(slots, pairs):
        total += memory * min(slots, count)
        slots -= min(slots, count)
    return total
