"""Twister2's DataLocalityStreamingTaskScheduler and DataLocalityBatchTaskScheduler: no sizes, no block locations."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.placement.reproductions.twister2.containers import (
    UNSAID_PARALLELISM,
    Filled,
    make_empty,
    make_instance,
    make_plan,
)
from airflow_dagsched.placement.reproductions.twister2.levels import Children, list_batches
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan


def compute_distance(bandwidth: float, latency: float, data_bandwidth: float, data_latency: float) -> float:
    """Difference of two bandwidth-delay products: a faster worker is farther."""
    return abs(2 * bandwidth * latency - 2 * data_bandwidth * data_latency)


def place_streaming(request: Request) -> TaskSchedulePlan:
    """Each task as a whole to the worker at the least distance; one that the task before filled drops out."""
    filled = make_empty(request)
    cap = _get_cap(request)
    _check_input(request)
    _check_capacity(request, cap)
    far = [_compute_offer_distance(offer, request.settings) for offer in request.offers]
    open_to, last = list(range(len(filled))), None
    for step in request.steps:
        # Full is noticed when the next task comes: the one that filled it may have gone beyond the cap.
        if last is not None and len(filled[last]) >= cap:
            open_to.remove(last)
        last = _find_nearest(step, open_to, far, cap)
        filled[last] += [make_instance(step, step.number, index) for index in range(step.parallelism)]
    return make_plan(request, filled)


def place_batch(request: Request, children: Children) -> TaskSchedulePlan:
    """The first container to its cap, the next with all the rest; sizes count the first batch."""
    filled = make_empty(request)
    _check_input(request)
    cap, number, first = _get_cap(request), 0, frozenset[int]()
    for level in list_batches(request, children):
        for step in level:
            _add_instances(filled, step, number, cap)
            number += 1
        first = first or frozenset(range(number))
    return make_plan(request, filled, [first] * len(filled))


def _get_cap(request: Request) -> int:
    """The graph's, else the container's; 0 where neither is given, as of a graph with constraints but no cap."""
    return request.settings.max_instances_per_worker or request.settings.instances_per_container or 0


def _check_input(request: Request) -> None:
    if not any(step.blocks for step in request.steps):
        raise InvalidInput(f"dataflow {request.name!r}", "", "no step reads from a path: data nodes are unknown")


def _check_capacity(request: Request, cap: int) -> None:
    count, capped = sum(_get_parallelism(request, step) for step in request.steps), cap * len(request.offers)
    if count > capped:
        raise DoesNotFit(f"dataflow {request.name!r}", f"cap of {cap} per container", count, capped, "instances")


def _get_parallelism(request: Request, step: StepRequest) -> int:
    """What the cap is compared with, and nothing else: placed are as many as the task itself has."""
    constraints = request.settings.step_parallelism
    if constraints is None:
        return step.parallelism
    if step.id not in constraints:
        rule = f"says nothing of {step.id!r}: Twister2 fails on a task that node constraints leave out"
        raise InvalidInput(f"dataflow {request.name!r}", "step_parallelism", rule)
    return constraints[step.id] or UNSAID_PARALLELISM


def _compute_offer_distance(offer: Offer, settings: PlacementSettings) -> float:
    """The worker's own network counts if it declares both its figures."""
    network = settings.worker_bandwidth_mb_s, settings.worker_latency_s
    if offer.bandwidth_mb_s is not None and offer.latency_s is not None:
        network = offer.bandwidth_mb_s, offer.latency_s
    return compute_distance(*network, settings.datanode_bandwidth_mb_s, settings.datanode_latency_s)


def _find_nearest(step: StepRequest, open_to: Sequence[int], far: Sequence[float], cap: int) -> int:
    if not open_to:
        raise DoesNotFit(f"step {step.id!r}", "workers that are not full", 1, 0, "workers")
    if step.parallelism > cap:
        raise DoesNotFit(f"step {step.id!r}", f"cap of {cap} per container", step.parallelism, cap, "instances")
    return min(open_to, key=lambda at: (far[at], at))


def _add_instances(filled: Filled, step: StepRequest, number: int, cap: int) -> None:
    if step.parallelism > cap and len(filled) == 1:
        raise DoesNotFit(f"step {step.id!r}", f"cap of {cap} per container", step.parallelism, cap, "instances")
    for index in range(step.parallelism):
        # On to the second container once, whatever it holds; there all the rest piles up.
        filled[min(index // cap, 1) if cap else 1].append(make_instance(step, number, index))
