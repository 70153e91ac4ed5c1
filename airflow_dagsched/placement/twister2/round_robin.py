"""Twister2's RoundRobinTaskScheduler, RoundRobinBatchTaskScheduler and the placing of its BatchTaskScheduler."""

from __future__ import annotations

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.twister2.containers import empty, instance, planned
from airflow_dagsched.placement.twister2.levels import batches
from airflow_dagsched.placement.values import TaskSchedulePlan

DEFAULT_PARALLELISM = 2


def streaming(request: Request) -> TaskSchedulePlan:
    """Instance ``i`` of every task to container ``i`` modulo containers: the turn starts anew for each task."""
    filled = empty(request)
    for work in request.works:
        for index in range(_parallelism(request, work)):
            filled[index % len(filled)].append(instance(work, work.number, index))
    return planned(request, filled)


def _parallelism(request: Request, work: Work) -> int:
    """With node constraints: theirs, 2 for a task that names none, none for a task that is not in them.

    The cap is compared with the instances of one task over all containers; a cap that is not given is 0.
    """
    constraints = request.settings.step_parallelism
    if constraints is None:
        return work.parallelism
    count = (constraints[work.step] or DEFAULT_PARALLELISM) if work.step in constraints else 0
    cap = request.settings.max_instances_per_worker or 0
    if count > cap:
        raise DoesNotFit(f"step {work.step!r}", f"cap of {cap} instances", count, cap, "instances")
    return count


def batch(request: Request) -> TaskSchedulePlan:
    """Within a batch the turn runs on over its tasks; sizes count the first batch. A cap adds phantom instances."""
    filled = empty(request)
    number, first = 0, frozenset[int]()
    for level in batches(request):
        turn = 0
        for work in level:
            for index in range(max(work.parallelism, request.settings.max_instances_per_worker or 0)):
                filled[turn % len(filled)].append(instance(work, number, index))
                turn += 1
            number += 1
        first = first or frozenset(range(number))
    return planned(request, filled, [first] * len(filled))
