"""From the offer of each instance to the schedule: containers with what they need, instances, assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    total,
)

Kept = Mapping[int, Sequence[InstancePlan]]
"""By offer, copies of state that take memory and disk there."""


def schedule_of(
    request: Request, places: Places, reason: str, standbys: Kept | None = None, warmups: Kept | None = None
) -> TaskSchedulePlan:
    """The schedule; an offer that holds nothing is left out."""
    ready, warming = standbys or {}, warmups or {}
    instances = _instances(request)
    held: list[list[InstancePlan]] = [[] for _ in request.offers]
    assignment = {}
    for one in instances:
        at = places[one.number][one.index]
        held[at].append(one)
        assignment[instance_id(one.step, one.index)] = request.offers[at].worker
    containers = tuple(
        _container(request, offer, (held[at], ready.get(at, ()), warming.get(at, ())))
        for at, offer in enumerate(request.offers)
        if held[at] or at in ready or at in warming
    )
    return TaskSchedulePlan(containers, instances, assignment, reason)


def _instances(request: Request) -> tuple[InstancePlan, ...]:
    return tuple(
        InstancePlan(work.step, work.number, index, work.needs)
        for work in request.works
        for index in range(work.parallelism)
    )


def _container(request: Request, offer: Offer, held: tuple[Sequence[InstancePlan], ...]) -> ContainerPlan:
    """``held``: instances, standbys and warm-ups."""
    instances, standbys, warmups = (tuple(ones) for ones in held)
    counts: dict[int, int] = {}
    for one in instances:
        counts[one.number] = counts.get(one.number, 0) + 1
    kept = total(one.needs for one in standbys + warmups)
    runs = held_by(request, counts, offer, kept.memory_mb) if counts else Amounts()
    required = padded(runs + kept, request.settings)
    size = size_of(offer, required, request.settings)
    return ContainerPlan(offer.id, offer.worker, instances, required, size, standbys, warmups)


def size_of(offer: Offer, required: Amounts, settings: PlacementSettings) -> Amounts:
    """As required, or all that is offered, where the settings say so and the worker declares all of it."""
    if settings.container_size == "required" or not (offer.memory_mb and offer.disk_mb and offer.cores):
        return required
    return Amounts(offer.memory_mb, offer.disk_mb, offer.cores)
