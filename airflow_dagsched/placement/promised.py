"""What every policy promises, told from its schedule alone: for classes that are not ours, whose word is not enough.

instances   each in exactly one container, none that the dataflow does not have
containers  no more on a worker than were offered, none above what was offered there
assigned    where it is given, actives and copies of state where the containers have them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.room import Room, rooms_of
from airflow_dagsched.placement.values import ContainerPlan, TaskSchedulePlan, instance_id


def fault_of(found: object, request: Request) -> str:
    """What is wrong with a schedule of ``request``, the first thing; empty: nothing."""
    if not isinstance(found, TaskSchedulePlan):
        return f"schedule returned {type(found).__name__}, not TaskSchedulePlan"
    return next(chain(_miscounted(found, request), _overfilled(found, request), _misassigned(found)), "")


def _miscounted(found: TaskSchedulePlan, request: Request) -> Iterator[str]:
    wanted = Counter(instance_id(work.step, index) for work in request.works for index in range(work.parallelism))
    placed = Counter(instance_id(one.step, one.index) for box in found.container_plan for one in box.instances)
    for instance in wanted - placed:
        yield f"{instance} is in no container"
    for instance in placed - wanted:
        yield f"{instance} is in {placed[instance]} containers" if instance in wanted else f"there is no {instance}"


def _overfilled(found: TaskSchedulePlan, request: Request) -> Iterator[str]:
    room = Room(request, rooms_of(request))
    offered: dict[str, list[int]] = {}
    for at, offer in enumerate(request.offers):
        offered.setdefault(offer.worker, []).append(at)
    for worker, boxes in _by_worker(found.container_plan).items():
        seats = offered.get(worker, [])
        if len(boxes) > len(seats):
            yield f"worker {worker!r} has {len(boxes)} containers, where {len(seats)} were offered"
        for box, at in zip(boxes, seats, strict=False):
            yield from _too_much(box, at, room)


def _by_worker(boxes: Iterable[ContainerPlan]) -> dict[str, list[ContainerPlan]]:
    found: dict[str, list[ContainerPlan]] = {}
    for box in boxes:
        found.setdefault(box.worker, []).append(box)
    return found


def _too_much(box: ContainerPlan, at: int, room: Room) -> Iterator[str]:
    """Instances of the container that offer ``at`` may not or cannot hold, then copies of state without room."""
    works = {work.step: work for work in room.request.works}
    for one in box.instances:
        work = works.get(one.step)
        if work is None:
            continue
        if not room.may_hold(work, one.index, at):
            why = _why(room.request.allowed(work, one.index), box.worker)
            yield f"{instance_id(one.step, one.index)} {why} on worker {box.worker!r}"
        room.take(work, at)
    for copy in box.copies:
        if not room.may_keep(copy.needs, at):
            yield f"a copy of {instance_id(copy.step, copy.index)} has no room on worker {box.worker!r}"
        room.keep(copy.needs, at)


def _why(allowed: frozenset[str], worker: str) -> str:
    return "may not be" if allowed and worker not in allowed else "has no room beside the others"


def _misassigned(found: TaskSchedulePlan) -> Iterator[str]:
    told = found.assigned.assignment if found.assigned is not None else None
    roles = (
        ("active", [(box.worker, box.instances) for box in found.container_plan if told], told and told.active),
        ("standby", [(box.worker, box.standbys) for box in found.container_plan], told and told.standby),
        ("warmup", [(box.worker, box.warmups) for box in found.container_plan], told and told.warmup),
    )
    for role, boxes, said in roles:
        held = Counter((instance_id(one.step, one.index), worker) for worker, ones in boxes for one in ones)
        pairs = Counter((name, worker) for name, on in (said or {}).items() for worker in _each(on))
        for name, worker in held - pairs:
            yield f"{name} is {role} on worker {worker!r}, but not in assigned"
        for name, worker in pairs - held:
            yield f"{name} is {role} on worker {worker!r} in assigned, but in no container"


def _each(on: str | tuple[str, ...]) -> tuple[str, ...]:
    return (on,) if isinstance(on, str) else on
