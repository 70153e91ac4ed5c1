"""From the offer of each instance to the schedule: containers with what they need, instances, assignment."""

from __future__ import annotations

from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.padding import padded
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.room import held_by
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import (
    Amounts,
    ContainerPlan,
    InstancePlan,
    Offer,
    TaskSchedulePlan,
    instance_id,
)


def schedule_of(request: Request, places: Places, reason: str) -> TaskSchedulePlan:
    """The schedule; an offer without instances is left out."""
    instances = _instances(request)
    held: list[list[InstancePlan]] = [[] for _ in request.offers]
    assignment = {}
    for one in instances:
        at = places[one.number][one.index]
        held[at].append(one)
        assignment[instance_id(one.step, one.index)] = request.offers[at].worker
    pairs = zip(request.offers, held, strict=True)
    containers = tuple(_container(request, offer, tuple(ones)) for offer, ones in pairs if ones)
    return TaskSchedulePlan(containers, instances, assignment, reason)


def _instances(request: Request) -> tuple[InstancePlan, ...]:
    return tuple(
        InstancePlan(work.step, work.number, index, work.needs)
        for work in request.works
        for index in range(work.parallelism)
    )


def _container(request: Request, offer: Offer, instances: tuple[InstancePlan, ...]) -> ContainerPlan:
    counts: dict[int, int] = {}
    for one in instances:
        counts[one.number] = counts.get(one.number, 0) + 1
    required = padded(held_by(request, counts, offer), request.settings)
    size = size_of(offer, required, request.settings)
    return ContainerPlan(offer.id, offer.worker, instances, required, size)


def size_of(offer: Offer, required: Amounts, settings: PlacementSettings) -> Amounts:
    """As required, or all that is offered, where the settings say so and the worker declares all of it."""
    if settings.container_size == "required" or not (offer.memory_mb and offer.disk_mb and offer.cores):
        return required
    return Amounts(offer.memory_mb, offer.disk_mb, offer.cores)
