"""Twister2's containers: numbered by position, planned even when empty, cpu summed from disk."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.values import (
    Amounts,
    ContainerPlan,
    InstancePlan,
    Offer,
    TaskSchedulePlan,
    name_instance,
)

UNSAID_PARALLELISM = 2
"""Instances of a task that node constraints name without a number."""
Filled = list[list[InstancePlan]]
"""The instances of each container, by position."""


def make_empty(request: Request) -> Filled:
    """A container for each worker; raises ``DoesNotFit`` if there is none."""
    if not request.offers:
        raise DoesNotFit(f"dataflow {request.name!r}", "workers", 1, 0, "workers")
    return [[] for _ in request.offers]


def make_instance(step: StepRequest, number: int, index: int) -> InstancePlan:
    """The instance under the task id that Twister2 gives it."""
    return InstancePlan(step.id, number, index, step.needs)


def make_plan(request: Request, filled: Filled, counted: Sequence[frozenset[int]] | None = None) -> TaskSchedulePlan:
    """The schedule; ``counted``: for each container the task ids that its size counts, None: all."""
    containers = []
    for at, (offer, held) in enumerate(zip(request.offers, filled, strict=True)):
        sized = [instance for instance in held if counted is None or instance.number in counted[at]]
        size = _compute_size(request, offer, sized)
        containers.append(ContainerPlan(str(at), str(at), _sort_instances(held), size, size))
    return make_schedule(containers)


def make_schedule(containers: Sequence[ContainerPlan]) -> TaskSchedulePlan:
    """The schedule of these containers; of an instance planned twice the last one counts."""
    instances = _sort_instances([instance for container in containers for instance in container.instances])
    workers = {
        name_instance(instance.step, instance.index): container.worker
        for container in containers
        for instance in container.instances
    }
    return TaskSchedulePlan(tuple(containers), instances, workers, "as Twister2 does")


def _sort_instances(instances: Sequence[InstancePlan]) -> tuple[InstancePlan, ...]:
    return tuple(sorted(instances, key=lambda instance: (instance.number, instance.index)))


def _compute_size(request: Request, offer: Offer, held: Sequence[InstancePlan]) -> Amounts:
    """Padding and sums, unless the worker declares all three: then what it has, whether that is enough or not."""
    if offer.memory_mb and offer.disk_mb and offer.cores:
        return Amounts(offer.memory_mb, offer.disk_mb, offer.cores)
    settings = request.settings
    disk = sum(instance.needs.disk_mb for instance in held)
    memory = settings.ram_padding_mb + sum(instance.needs.memory_mb for instance in held)
    # Disk, not cores: Twister2 adds up the wrong field, so two default instances ask for 1001 cpu.
    return Amounts(memory, settings.disk_padding_mb + disk, settings.cpu_padding + disk)
