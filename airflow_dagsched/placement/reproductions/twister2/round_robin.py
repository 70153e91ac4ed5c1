"""Twister2's RoundRobinTaskScheduler, RoundRobinBatchTaskScheduler and the placing of its BatchTaskScheduler."""

from __future__ import annotations

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.reproductions.twister2.containers import (
    UNSAID_PARALLELISM,
    make_empty,
    make_instance,
    make_plan,
)
from airflow_dagsched.placement.reproductions.twister2.levels import Children, list_batches
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.values import TaskSchedulePlan


def place_streaming(request: Request) -> TaskSchedulePlan:
    """Instance ``i`` of every task to container ``i`` modulo containers: the turn starts anew for each task."""
    filled = make_empty(request)
    for step in request.steps:
        for index in range(_get_parallelism(request, step)):
            filled[index % len(filled)].append(make_instance(step, step.number, index))
    return make_plan(request, filled)


def _get_parallelism(request: Request, step: StepRequest) -> int:
    """With node constraints: theirs, 2 for a task that names none, none for a task that is not in them.

    The cap is compared with the instances of one task over all containers; a cap that is not given is 0.
    """
    constraints = request.settings.step_parallelism
    if constraints is None:
        return step.parallelism
    count = (constraints[step.id] or UNSAID_PARALLELISM) if step.id in constraints else 0
    cap = request.settings.max_instances_per_worker or 0
    if count > cap:
        raise DoesNotFit(f"step {step.id!r}", f"cap of {cap} instances", count, cap, "instances")
    return count


def place_batch(request: Request, children: Children) -> TaskSchedulePlan:
    """Within a batch the turn runs on over its tasks; sizes count the first batch. A cap adds phantom instances."""
    filled = make_empty(request)
    number, first = 0, frozenset[int]()
    for level in list_batches(request, children):
        turn = 0
        for step in level:
            # The cap is taken for a number wanted: where it is above the parallelism, instances that no task has.
            for index in range(max(step.parallelism, request.settings.max_instances_per_worker or 0)):
                filled[turn % len(filled)].append(make_instance(step, number, index))
                turn += 1
            number += 1
        first = first or frozenset(range(number))
    return make_plan(request, filled, [first] * len(filled))
