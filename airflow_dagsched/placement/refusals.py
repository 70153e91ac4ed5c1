"""What is refused before anything is placed, and how: each with needed and available, dimension by dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.containers.evidence import Room, explain_shortage
from airflow_dagsched.placement.offer_capacity import limit_disks
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.values import DIMENSIONS, UNITS, Limit


def check_capacity(request: Request, limits: Sequence[Limit]) -> None:
    """Raises ``DoesNotFit`` for the first thing that no placement could do; ``limits``: room in each offer."""
    for refusal in _find_refusals(request, limits):
        raise refusal


def _find_refusals(request: Request, limits: Sequence[Limit]) -> Iterator[DoesNotFit]:
    if not request.offers and request.steps:
        yield DoesNotFit(f"dataflow {request.name!r}", "workers", 1, 0, "workers")
    yield from _find_over_cap(request)
    # By set of workers, not by instance: there is mostly one set, and there may be thousands of instances.
    open_to = _group_rooms(request, limits)
    for step in request.steps:
        for allowed in sorted(
            {request.get_allowed_workers(step, index) for index in _list_indices(request, step)}, key=sorted
        ):
            yield from _refuse_alone(step, open_to[allowed])
    yield from _refuse_together(request, limits)


def _find_over_cap(request: Request) -> Iterator[DoesNotFit]:
    """Refusals of more instances than caps allow: of all steps if they are resident, else of each."""
    if request.residency == "all":
        counts = [(f"dataflow {request.name!r}", request.instance_count)]
    else:
        counts = [(f"step {step.id!r}", step.parallelism) for step in request.steps]
    for what, count in counts:
        for cap, holders, name in _list_caps(request):
            if count > cap * holders:
                yield DoesNotFit(what, f"cap of {cap} per {name}", count, cap * holders, "instances")


def _list_caps(request: Request) -> Iterator[tuple[int, int, str]]:
    """Caps that are set: of how many instances, times how many, of what."""
    settings = request.settings
    if settings.instances_per_container is not None:
        yield settings.instances_per_container, len(request.offers), "container"
    if settings.max_instances_per_worker is not None:
        yield settings.max_instances_per_worker, len({offer.worker for offer in request.offers}), "worker"


def _list_indices(request: Request, step: StepRequest) -> Sequence[int]:
    """Indices of the instances that may differ in where they may be."""
    return range(step.parallelism) if request.beside else range(1)


def _group_rooms(request: Request, limits: Sequence[Limit]) -> dict[frozenset[str], list[Room]]:
    """What the offers have in each set of workers that some instance is confined to."""
    sets = {
        request.get_allowed_workers(step, index) for step in request.steps for index in _list_indices(request, step)
    }
    return {allowed: list(_list_rooms(request, limits, allowed)) for allowed in sets}


def _list_rooms(request: Request, limits: Sequence[Limit], allowed: frozenset[str]) -> Iterator[Room]:
    """What the offers have on the workers ``allowed``; empty: on all."""
    for offer, limit in zip(request.offers, limits, strict=True):
        if not allowed or offer.worker in allowed:
            yield offer.worker, limit


def _refuse_alone(step: StepRequest, open_to: Sequence[Room]) -> Iterator[DoesNotFit]:
    """An instance that is larger than any container it may be in."""
    if not open_to:
        yield DoesNotFit(f"step {step.id!r}", "workers it may be on", 1, 0, "workers")
    shortage = explain_shortage(f"step {step.id!r}", "an instance", step.needs.list_values(), open_to)
    if shortage:
        yield shortage


def _refuse_together(request: Request, limits: Sequence[Limit]) -> Iterator[DoesNotFit]:
    """All that has to be held at the same time, against all there is."""
    available = _sum_limits(request, limits)
    for at in _list_kept_dimensions(request):
        need = request.sum_needs(at)
        # Relative, since both sides are sums of thousands: what rounding adds grows with them.
        if need > available[at] * (1 + TOLERANCE):
            what = f"{DIMENSIONS[at]} of all its instances"
            yield DoesNotFit(f"dataflow {request.name!r}", what, need, available[at], UNITS[at])


def _list_kept_dimensions(request: Request) -> tuple[int, ...]:
    """Dimensions that stay taken to the end."""
    if request.residency == "all":
        return (0, 1, 2)
    # Memory and cores come back with each wave, shuffle files with a barrier only.
    return () if request.settings.barriers else (1,)


def _sum_limits(request: Request, limits: Sequence[Limit]) -> Limit:
    disks = limit_disks(request, limits).values()
    return math.fsum(limit[0] for limit in limits), math.fsum(disks), math.fsum(limit[2] for limit in limits)


def refuse_instance(request: Request, step: StepRequest, free: Sequence[Limit]) -> DoesNotFit:
    """Sums fit, but no way was found to place every instance; ``free``: what was left when ``step`` got no room."""
    rooms, what = _list_rooms(request, free, request.get_allowed_workers(step)), f"step {step.id!r}"
    shortage = explain_shortage(what, "an instance beside what is placed", step.needs.list_values(), rooms)
    # Else a cap is reached, or what could run at once with it: no amount of one resource would do.
    thing = f"containers with room for an instance beside what is placed on {len(free)}"
    return shortage or DoesNotFit(what, thing, 1, 0, "containers")
