"""From the offer of each instance to the schedule: containers with what they need, instances, assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from airflow_dagsched.placement.containers.requirements import add_padding
from airflow_dagsched.placement.exhaustive_search import Placement
from airflow_dagsched.placement.offer_capacity import compute_held
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import (
    Amounts,
    ContainerPlan,
    InstancePlan,
    Offer,
    TaskSchedulePlan,
    name_instance,
    sum_amounts,
)

CopiesByOffer = Mapping[int, Sequence[InstancePlan]]
"""Copies of state that take memory and disk, by offer."""


def make_schedule(
    request: Request,
    places: Placement,
    reason: str,
    standbys: CopiesByOffer | None = None,
    warmups: CopiesByOffer | None = None,
) -> TaskSchedulePlan:
    """The schedule; an offer that holds nothing is left out."""
    ready, warming = standbys or {}, warmups or {}
    instances = _list_instances(request)
    held: list[list[InstancePlan]] = [[] for _ in request.offers]
    assignment = {}
    for instance in instances:
        at = places[instance.number][instance.index]
        held[at].append(instance)
        assignment[name_instance(instance.step, instance.index)] = request.offers[at].worker
    containers = tuple(
        _make_container(request, offer, (held[at], ready.get(at, ()), warming.get(at, ())))
        for at, offer in enumerate(request.offers)
        if held[at] or at in ready or at in warming
    )
    return TaskSchedulePlan(containers, instances, assignment, reason)


def _list_instances(request: Request) -> tuple[InstancePlan, ...]:
    return tuple(InstancePlan(step.id, step.number, index, step.needs) for step, index in request.list_instances())


def _make_container(request: Request, offer: Offer, held: tuple[Sequence[InstancePlan], ...]) -> ContainerPlan:
    """``held``: instances, standbys and warm-ups."""
    instances, standbys, warmups = map(tuple, held)
    counts = Counter(instance.number for instance in instances)
    kept = sum_amounts(instance.needs for instance in standbys + warmups)
    # Copies of state alone run nothing: no cores, and no wave to take the most of.
    runs = compute_held(request, counts, offer, kept.memory_mb) if counts else Amounts()
    required = add_padding(runs + kept, request.settings)
    size = choose_size(offer, required, request.settings)
    return ContainerPlan(offer.id, offer.worker, instances, required, size, standbys, warmups)


def choose_size(offer: Offer, required: Amounts, settings: PlacementSettings) -> Amounts:
    """What a container gets: as required, or all that is offered, where the settings and the worker say so."""
    # As in Twister2 what the worker has counts only where it declares all three.
    if settings.container_size == "required" or not (offer.memory_mb and offer.disk_mb and offer.cores):
        return required
    return Amounts(offer.memory_mb, offer.disk_mb, offer.cores)
