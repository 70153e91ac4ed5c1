"""Twister2's containers: numbered by position, planned even when empty, cpu summed from disk."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.values import (
    Amounts,
    ContainerPlan,
    InstancePlan,
    Offer,
    TaskSchedulePlan,
    instance_id,
)

Filled = list[list[InstancePlan]]
"""The instances of each container, by position."""


def empty(request: Request) -> Filled:
    """A container for each worker; raises ``DoesNotFit`` if there is none."""
    if not request.offers:
        raise DoesNotFit(f"dataflow {request.name!r}", "workers", 1, 0, "workers")
    return [[] for _ in request.offers]


def instance(work: Work, number: int, index: int) -> InstancePlan:
    """The instance under the task id that Twister2 gives it."""
    return InstancePlan(work.step, number, index, work.needs)


def planned(request: Request, filled: Filled, counted: Sequence[frozenset[int]] | None = None) -> TaskSchedulePlan:
    """The schedule; ``counted``: for each container the task ids that its size counts, None: all."""
    containers = []
    for at, (offer, held) in enumerate(zip(request.offers, filled, strict=True)):
        sized = [one for one in held if counted is None or one.number in counted[at]]
        size = _size(request, offer, sized)
        containers.append(ContainerPlan(str(at), str(at), _sorted(held), size, size))
    return schedule(containers)


def schedule(containers: Sequence[ContainerPlan]) -> TaskSchedulePlan:
    """The schedule of these containers; of an instance planned twice the last one counts."""
    instances = _sorted([one for container in containers for one in container.instances])
    workers = {instance_id(one.step, one.index): box.worker for box in containers for one in box.instances}
    return TaskSchedulePlan(tuple(containers), instances, workers, "as Twister2 does")


def _sorted(instances: Sequence[InstancePlan]) -> tuple[InstancePlan, ...]:
    return tuple(sorted(instances, key=lambda one: (one.number, one.index)))


def _size(request: Request, offer: Offer, held: Sequence[InstancePlan]) -> Amounts:
    """Padding and sums, unless the worker declares all three: then what it has, whether that is enough or not."""
    if offer.memory_mb and offer.disk_mb and offer.cores:
        return Amounts(offer.memory_mb, offer.disk_mb, offer.cores)
    settings = request.settings
    disk = sum(one.needs.disk_mb for one in held)
    memory = settings.ram_padding_mb + sum(one.needs.memory_mb for one in held)
    return Amounts(memory, settings.disk_padding_mb + disk, settings.cpu_padding + disk)
