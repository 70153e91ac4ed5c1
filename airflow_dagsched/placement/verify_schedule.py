"""What every policy promises, told from its schedule alone: for classes that are not ours, whose word is not enough.

instances   each in exactly one container, none that the dataflow does not have
containers  no more on a worker than were offered, none above what was offered there
assigned    where it is given, actives and copies of state where the containers have them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from airflow_dagsched.placement.offer_capacity import OfferCapacity, compute_limits
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.values import ContainerPlan, TaskSchedulePlan, name_instance


def find_fault(schedule: object, request: Request) -> str:
    """What is wrong with a schedule of ``request``, the first thing; empty: nothing."""
    if not isinstance(schedule, TaskSchedulePlan):
        return f"schedule returned {type(schedule).__name__}, not TaskSchedulePlan"
    return next(
        chain(_find_miscounted(schedule, request), _find_overfilled(schedule, request), _find_misassigned(schedule)), ""
    )


def _find_miscounted(schedule: TaskSchedulePlan, request: Request) -> Iterator[str]:
    wanted = Counter(name_instance(step.id, index) for step, index in request.list_instances())
    placed = Counter(
        name_instance(instance.step, instance.index)
        for container in schedule.container_plan
        for instance in container.instances
    )
    for name in wanted - placed:
        yield f"{name} is in no container"
    for name in placed - wanted:
        yield f"{name} is in {placed[name]} containers" if name in wanted else f"there is no {name}"


def _find_overfilled(schedule: TaskSchedulePlan, request: Request) -> Iterator[str]:
    capacity = OfferCapacity(request, compute_limits(request))
    offered: dict[str, list[int]] = {}
    for at, offer in enumerate(request.offers):
        offered.setdefault(offer.worker, []).append(at)
    for worker, containers in _group_by_worker(schedule.container_plan).items():
        offered_here = offered.get(worker, [])
        if len(containers) > len(offered_here):
            yield f"worker {worker!r} has {len(containers)} containers, where {len(offered_here)} were offered"
        # Containers against offers of the worker in order: which one a policy meant is not in the schedule.
        for container, at in zip(containers, offered_here, strict=False):
            yield from _find_excess(container, at, capacity)


def _group_by_worker(containers: Iterable[ContainerPlan]) -> dict[str, list[ContainerPlan]]:
    by_worker: dict[str, list[ContainerPlan]] = {}
    for container in containers:
        by_worker.setdefault(container.worker, []).append(container)
    return by_worker


def _find_excess(container: ContainerPlan, at: int, capacity: OfferCapacity) -> Iterator[str]:
    """Instances of the container that offer ``at`` may not or cannot hold, then copies of state without room."""
    steps = {step.id: step for step in capacity.request.steps}
    for instance in container.instances:
        step = steps.get(instance.step)
        if step is None:  # told already, as an instance that there is not
            continue
        if not capacity.may_hold(step, instance.index, at):
            why = _explain_excess(capacity.request.get_allowed_workers(step, instance.index), container.worker)
            yield f"{name_instance(instance.step, instance.index)} {why} on worker {container.worker!r}"
        capacity.take_instance(step, at)
    for copy in container.copies:
        if not capacity.may_hold_copy(copy.needs, at):
            yield f"a copy of {name_instance(copy.step, copy.index)} has no room on worker {container.worker!r}"
        capacity.take_copy(copy.needs, at)


def _explain_excess(allowed: frozenset[str], worker: str) -> str:
    return "may not be" if allowed and worker not in allowed else "has no room beside the others"


def _find_misassigned(schedule: TaskSchedulePlan) -> Iterator[str]:
    assignment = schedule.assigned.assignment if schedule.assigned is not None else None
    # Actives are in containers without an assignment, too; copies of state only where one says so.
    roles = (
        (
            "active",
            [(container.worker, container.instances) for container in schedule.container_plan if assignment],
            assignment and assignment.active,
        ),
        (
            "standby",
            [(container.worker, container.standbys) for container in schedule.container_plan],
            assignment and assignment.standby,
        ),
        (
            "warmup",
            [(container.worker, container.warmups) for container in schedule.container_plan],
            assignment and assignment.warmup,
        ),
    )
    for role, containers, said in roles:
        held = Counter(
            (name_instance(instance.step, instance.index), worker)
            for worker, instances in containers
            for instance in instances
        )
        pairs = Counter((name, worker) for name, on in (said or {}).items() for worker in _list_workers(on))
        for name, worker in held - pairs:
            yield f"{name} is {role} on worker {worker!r}, but not in assigned"
        for name, worker in pairs - held:
            yield f"{name} is {role} on worker {worker!r} in assigned, but in no container"


def _list_workers(on: str | tuple[str, ...]) -> tuple[str, ...]:
    return (on,) if isinstance(on, str) else on
