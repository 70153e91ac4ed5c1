"""From a policy's schedule to the containers of a group, all of one shape.

policy    [ a a ] [ a b ]  required 3 GiB, 2 GiB      as small as the fullest allows: 3 GiB, 3 GiB;
plan      [ a a ] [ a b ]       of 3 GiB, 3 GiB       or as large as the workers offer

What holds copies of state alone is no executor: it has no cores, and the memory and disk of the copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.placement.containers.requirements import add_padding, compute_held_at_once
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.values import Amounts, ContainerPlan, InstancePlan, TaskSchedulePlan, sum_amounts
from airflow_dagsched.plan.passes.containers.container_offers import Shape
from airflow_dagsched.plan.passes.containers.repack_equally import repack_equally
from airflow_dagsched.plan.passes.containers.whole_worker import is_offered, size_as_offered
from airflow_dagsched.plan.plan_types import Container, Group, Instance, Resources

Held = tuple[list[tuple[StepRequest, int]], Amounts]
"""What a container has: how many instances of each step, and what the copies of state take."""


Fit = tuple[tuple[Container, ...], TaskSchedulePlan]
"""The containers of a group, and the schedule that they come from."""


def build_containers(
    group: Group, request: Request, shape: Shape, schedule: TaskSchedulePlan, mb_per_core: float
) -> Fit:
    """Containers of one shape: as small as the fullest allows, or as large as offered. Raises ``DoesNotFit``.

    Resident ones are dealt anew on their workers, so that they hold the least; ``mb_per_core``: of all workers.
    """
    steps = {step.id: step for step in request.steps}
    boxes: Sequence[ContainerPlan] = schedule.container_plan
    if group.residency == "all" and not is_offered(request.settings):
        boxes = repack_equally(request, boxes, mb_per_core)
    # Executors first: what holds copies of state alone is none, and has no say in their shape.
    boxes = sorted(boxes, key=lambda box: not box.instances)
    held = [_sum_held(steps, box) for box in boxes]
    if is_offered(request.settings):
        used = {box.worker for box in boxes if box.instances}
        size, said = _size_as_offered(group, request, held, used)
        required = _list_required(group, request, held, size.cores)
        # A container as large as offered gets the worker's disk as well; else each only what it needs.
        disks = {offer.worker: int(offer.disk_mb or 0) for offer in request.offers if offer.worker in used}
        schedule = replace(schedule, reason="; ".join(filter(None, (schedule.reason, said))))
    else:
        # The fullest decides, for all are alike: more cores than it keeps busy would idle in each of them.
        busy = max(1, *(math.ceil(count_busy_cores(group, counts)) for counts, _ in held))
        cores = shape.cores if shape.is_fixed else min(shape.cores, busy)
        # Needs are those with these cores: fewer run fewer instances at once, and hold less memory.
        required = _list_required(group, request, held, cores)
        size, disks = shape if shape.is_fixed else Shape(cores, _find_most_memory(required, boxes)), {}
    return _make_containers(group, boxes, required, size, disks), schedule


def _size_as_offered(group: Group, request: Request, held: Sequence[Held], used: set[str]) -> tuple[Shape, str]:
    offers = [offer for offer in request.offers if offer.worker in used]
    least = find_widest(step for counts, _ in held for step, _ in counts)
    running = [one for one in held if one[0]]
    return size_as_offered(
        offers, least, lambda cores: max(one.memory_mb for one in _list_required(group, request, running, cores))
    )


def _sum_held(steps: Mapping[str, StepRequest], box: ContainerPlan) -> Held:
    return _count_instances(steps, [one.step for one in box.instances]), sum_amounts(one.needs for one in box.copies)


def _find_most_memory(required: Sequence[Resources], boxes: Sequence[ContainerPlan]) -> int:
    """MiB of the fullest executor."""
    return max(one.memory_mb for one, box in zip(required, boxes, strict=True) if box.instances)


def _make_containers(
    group: Group, boxes: Sequence[ContainerPlan], required: Sequence[Resources], size: Shape, disks: Mapping[str, int]
) -> tuple[Container, ...]:
    """Executors of one size; ``disks``: of a worker, where more is asked for than is needed."""
    return tuple(
        Container(
            id=f"{group.id}/{at}",
            worker=box.worker,
            instances=_sort_instances(group, box.instances),
            standbys=_sort_instances(group, box.standbys),
            warmups=_sort_instances(group, box.warmups),
            required=needed,
            cores=size.cores if box.instances else 0,
            memory_mb=size.memory_mb if box.instances else needed.memory_mb,
            disk_mb=max(needed.disk_mb, disks.get(box.worker, 0)),
        )
        for at, (box, needed) in enumerate(zip(boxes, required, strict=True))
    )


def find_widest(steps: Iterable[StepRequest]) -> int:
    """Cores of the widest instance."""
    return math.ceil(max((step.needs.cores for step in steps), default=1))


def _count_instances(steps: Mapping[str, StepRequest], names: Sequence[str]) -> list[tuple[StepRequest, int]]:
    counts: dict[str, int] = {}
    for step in names:
        counts[step] = counts.get(step, 0) + 1
    return [(steps[step], count) for step, count in counts.items()]


def count_busy_cores(group: Group, counts: Sequence[tuple[StepRequest, int]]) -> float:
    """Cores that the container can keep busy: those of all instances, in batch of the widest steps side by side."""
    widths = sorted((step.needs.cores * count for step, count in counts), reverse=True)
    return sum(widths if group.residency == "all" else widths[: group.slots])


def _list_required(group: Group, request: Request, held: Iterable[Held], cores: int) -> list[Resources]:
    """Of each container, if it has so many cores."""
    at_once = None if group.residency == "all" else cores  # resident: all at once, however many cores
    return [_sum_needed(request, counts, at_once, copies) for counts, copies in held]


def _sum_needed(
    request: Request, counts: Sequence[tuple[StepRequest, int]], cores: int | None, copies: Amounts
) -> Resources:
    held = compute_held_at_once(request, counts, cores) if counts else Amounts()  # copies alone: nothing runs
    needed = add_padding(held + copies, request.settings)
    return Resources(
        cores=math.ceil(held.cores), memory_mb=math.ceil(needed.memory_mb), disk_mb=math.ceil(needed.disk_mb)
    )


def _sort_instances(group: Group, held: Sequence[InstancePlan]) -> tuple[Instance, ...]:
    rank = {step: at for at, step in enumerate(group.steps)}
    # In the group's order, as the planner's own containers have them: plans are compared as text.
    return tuple(sorted(((one.step, one.index) for one in held), key=lambda one: (rank[one[0]], one[1])))
