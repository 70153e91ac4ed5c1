"""Twister2's FirstFitStreamingTaskScheduler, after Heron's packing: memory alone differs, the workers do not count."""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.twister2.containers import instance, schedule
from airflow_dagsched.placement.values import DIMENSIONS, UNITS, Amounts, ContainerPlan, InstancePlan, TaskSchedulePlan

DEFAULT_PERCENT = 1.0
Sizes = tuple[float, float, float]
"""Memory, disk, cores."""


def streaming(request: Request) -> TaskSchedulePlan:
    """Tasks by memory, the largest first; task ids are one per instance, containers are numbered from 1."""
    percent = request.settings.padding_percent
    percent = DEFAULT_PERCENT if percent is None else percent
    capacity = _capacity(request, percent)
    filled: list[list[InstancePlan]] = []
    number = 0
    for work in sorted(request.works, key=lambda work: -work.needs.memory_mb):
        needs = _needs(request, work)
        _check_alone(work, needs, capacity, percent)
        for index in range(work.parallelism):
            number += 1
            _into_first(filled, replace(instance(work, number, index), needs=needs), capacity, percent)
    return schedule([_container(at, held, percent) for at, held in enumerate(filled, 1)])


def _capacity(request: Request, percent: float) -> Sizes:
    settings, factor = request.settings, 1 + percent / 100
    count = settings.instances_per_container or 1
    memory, disk = settings.instance_memory_mb, settings.instance_disk_mb
    return round(memory * count * factor), round(disk * count * factor), round(settings.instance_cores * count * factor)


def _needs(request: Request, work: Work) -> Amounts:
    settings = request.settings
    return Amounts(work.needs.memory_mb, settings.instance_disk_mb, settings.instance_cores)


def _check_alone(work: Work, needs: Amounts, capacity: Sizes, percent: float) -> None:
    for at, (need, has) in enumerate(zip(needs.values(), capacity, strict=True)):
        padded = need * (1 + percent / 100)
        if padded > has:
            raise DoesNotFit(f"step {work.step!r}", f"{DIMENSIONS[at]} of an instance", padded, has, UNITS[at])


def _into_first(filled: list[list[InstancePlan]], one: InstancePlan, capacity: Sizes, percent: float) -> None:
    for held in filled:
        if _has_room(held, one, capacity, percent):
            held.append(one)
            return
    if not _has_room([], one, capacity, percent):
        raise DoesNotFit(f"step {one.step!r}", "an instance with its padding, in an empty container", 1, 0)
    filled.append([one])


def _has_room(held: list[InstancePlan], one: InstancePlan, capacity: Sizes, percent: float) -> bool:
    """The percentage is added as if it were an amount."""
    used = [sum(values) for values in zip(*(other.needs.values() for other in (*held, one)), strict=True)]
    return all(need + percent <= has for need, has in zip(used, capacity, strict=True))


def _container(at: int, held: list[InstancePlan], percent: float) -> ContainerPlan:
    """Memory and disk are reported twice over, the percentage added as an amount."""
    memory, disk, cores = (sum(values) for values in zip(*(one.needs.values() for one in held), strict=True))
    size = Amounts(2 * memory + percent, 2 * disk + percent, cores * (1 + percent / 100))
    return ContainerPlan(str(at), str(at), tuple(held), size, size)
