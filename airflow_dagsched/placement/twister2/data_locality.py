"""Twister2's DataLocalityStreamingTaskScheduler and DataLocalityBatchTaskScheduler: no sizes, no block locations."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.twister2.containers import Filled, empty, instance, planned
from airflow_dagsched.placement.twister2.levels import batches
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan


def distance(bandwidth: float, latency: float, data_bandwidth: float, data_latency: float) -> float:
    """Difference of two bandwidth-delay products: a faster worker is farther."""
    return abs(2 * bandwidth * latency - 2 * data_bandwidth * data_latency)


def streaming(request: Request) -> TaskSchedulePlan:
    """Each task as a whole to the worker at the least distance; one that the task before filled drops out."""
    filled = empty(request)
    cap = _cap(request)
    _check_input(request)
    _check_capacity(request, cap)
    far = [_distance_to(offer, request.settings) for offer in request.offers]
    open_to, last = list(range(len(filled))), None
    for work in request.works:
        if last is not None and len(filled[last]) >= cap:
            open_to.remove(last)
        last = _nearest(work, open_to, far, cap)
        filled[last] += [instance(work, work.number, index) for index in range(work.parallelism)]
    return planned(request, filled)


def batch(request: Request) -> TaskSchedulePlan:
    """The first container to its cap, the next with all the rest; sizes count the first batch."""
    filled = empty(request)
    _check_input(request)
    cap, number, first = _cap(request), 0, frozenset[int]()
    for level in batches(request):
        for work in level:
            _pile(filled, work, number, cap)
            number += 1
        first = first or frozenset(range(number))
    return planned(request, filled, [first] * len(filled))


def _cap(request: Request) -> int:
    return request.settings.max_instances_per_worker or request.settings.instances_per_container or 0


def _check_input(request: Request) -> None:
    if not any(work.blocks for work in request.works):
        raise InvalidInput(f"dataflow {request.name!r}", "", "no step reads from a path: data nodes are unknown")


def _check_capacity(request: Request, cap: int) -> None:
    count, room = request.instances, cap * len(request.offers)
    if count > room:
        raise DoesNotFit(f"dataflow {request.name!r}", f"cap of {cap} per container", count, room, "instances")


def _distance_to(offer: Offer, settings: PlacementSettings) -> float:
    """The worker's own network counts if it declares both its figures."""
    network = settings.worker_bandwidth_mb_s, settings.worker_latency_s
    if offer.bandwidth_mb_s is not None and offer.latency_s is not None:
        network = offer.bandwidth_mb_s, offer.latency_s
    return distance(*network, settings.datanode_bandwidth_mb_s, settings.datanode_latency_s)


def _nearest(work: Work, open_to: Sequence[int], far: Sequence[float], cap: int) -> int:
    if not open_to:
        raise DoesNotFit(f"step {work.step!r}", "workers that are not full", 1, 0, "workers")
    if work.parallelism > cap:
        raise DoesNotFit(f"step {work.step!r}", f"cap of {cap} per container", work.parallelism, cap, "instances")
    return min(open_to, key=lambda at: (far[at], at))


def _pile(filled: Filled, work: Work, number: int, cap: int) -> None:
    if work.parallelism > cap and len(filled) == 1:
        raise DoesNotFit(f"step {work.step!r}", f"cap of {cap} per container", work.parallelism, cap, "instances")
    for index in range(work.parallelism):
        filled[min(index // cap, 1)].append(instance(work, number, index))
