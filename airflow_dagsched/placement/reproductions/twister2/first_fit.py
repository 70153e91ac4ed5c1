"""Twister2's FirstFitStreamingTaskScheduler, after Heron's packing: memory alone differs, the workers do not count."""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.reproductions.twister2.containers import make_instance, make_schedule
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.values import DIMENSIONS, UNITS, Amounts, ContainerPlan, InstancePlan, TaskSchedulePlan

DEFAULT_PERCENT = 1.0
Sizes = tuple[float, float, float]
"""Memory, disk, cores."""


def place_streaming(request: Request) -> TaskSchedulePlan:
    """Tasks by memory, the largest first; task ids are one per instance, containers are numbered from 1."""
    percent = request.settings.padding_percent
    percent = DEFAULT_PERCENT if percent is None else percent
    capacity = _compute_capacity(request, percent)
    filled: list[list[InstancePlan]] = []
    number = 0
    # Descending, where Twister2's comment says increasing; stable, so equals stay as written.
    for step in sorted(request.steps, key=lambda step: -step.needs.memory_mb):
        needs = _get_needs(request, step)
        _check_alone(step, needs, capacity, percent)
        for index in range(step.parallelism):
            # One id an instance: its executor expects one a task.
            number += 1
            _add_to_first(filled, replace(make_instance(step, number, index), needs=needs), capacity, percent)
    return make_schedule([_make_container(at, held, percent) for at, held in enumerate(filled, 1)])


def _compute_capacity(request: Request, percent: float) -> Sizes:
    settings, factor = request.settings, 1 + percent / 100
    count = settings.instances_per_container or 1
    memory, disk = settings.instance_memory_mb, settings.instance_disk_mb
    return round(memory * count * factor), round(disk * count * factor), round(settings.instance_cores * count * factor)


def _get_needs(request: Request, step: StepRequest) -> Amounts:
    settings = request.settings
    return Amounts(step.needs.memory_mb, settings.instance_disk_mb, settings.instance_cores)


def _check_alone(step: StepRequest, needs: Amounts, capacity: Sizes, percent: float) -> None:
    for at, (need, has) in enumerate(zip(needs.list_values(), capacity, strict=True)):
        padded = need * (1 + percent / 100)
        if padded > has:
            raise DoesNotFit(f"step {step.id!r}", f"{DIMENSIONS[at]} of an instance", padded, has, UNITS[at])


def _add_to_first(filled: list[list[InstancePlan]], instance: InstancePlan, capacity: Sizes, percent: float) -> None:
    for held in filled:
        if _has_room(held, instance, capacity, percent):
            held.append(instance)
            return
    if not _has_room([], instance, capacity, percent):
        raise DoesNotFit(f"step {instance.step!r}", "an instance with its padding, in an empty container", 1, 0)
    filled.append([instance])


def _has_room(held: list[InstancePlan], instance: InstancePlan, capacity: Sizes, percent: float) -> bool:
    """The percentage is added as if it were an amount."""
    used = [sum(values) for values in zip(*(other.needs.list_values() for other in (*held, instance)), strict=True)]
    return all(need + percent <= has for need, has in zip(used, capacity, strict=True))


def _make_container(at: int, held: list[InstancePlan], percent: float) -> ContainerPlan:
    """Memory and disk are reported twice over, the percentage added as an amount."""
    memory, disk, cores = (
        sum(values) for values in zip(*(instance.needs.list_values() for instance in held), strict=True)
    )
    size = Amounts(2 * memory + percent, 2 * disk + percent, cores * (1 + percent / 100))
    return ContainerPlan(str(at), str(at), tuple(held), size, size)
