"""Which shape the containers of a group have, and where they are: the least of what its policy measures.

    shape        placement in it                     cheapest
    4 cores      dear [aaaa]                         240 x 10
    2 cores      spot1 [aa]  spot2 [aa]              240 x 1     <- chosen

A policy without a measure has its first choice of shape in which the group has all the cores it can use, else the first
that fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.placement.containers.evidence import explain_shortage
from airflow_dagsched.placement.policies.effort import Effort
from airflow_dagsched.placement.policies.rule_policy import MeasuredPolicy
from airflow_dagsched.placement.policy import PlacementPolicy, load_policy
from airflow_dagsched.placement.request import Request, make_request
from airflow_dagsched.placement.schedule import make_schedule
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Amounts, Offer, TaskSchedulePlan
from airflow_dagsched.plan.passes.containers.container_offers import Shape, list_shapes, make_bins
from airflow_dagsched.plan.passes.containers.shape_candidates import list_candidates
from airflow_dagsched.plan.passes.containers.uniform_containers import (
    Fit,
    build_containers,
    count_busy_cores,
    find_widest,
)
from airflow_dagsched.plan.passes.containers.whole_worker import is_offered, list_offered_shapes
from airflow_dagsched.plan.plan_types import Container, Group
from airflow_dagsched.plan.problem.run import Policy

Value = tuple[float, ...]
"""What is to be the least: the policy's measure, then cores that lack, what is held by cost, and containers."""


class Room(Struct, frozen=True):
    """What there is for one group."""

    offers: tuple[Offer, ...]
    """What others leave of each worker."""
    racks: Mapping[str, str]
    """Host -> rack, of the whole cluster: also of hosts that are full."""
    mb_per_core: float
    """MiB of memory for each core, of the whole cluster."""
    container_cores: int
    """Of one container, at most, in batch."""
    is_fixed: bool
    """Whether containers are as the author wants executors: as planned, whatever would hold the group."""
    groups: int
    """That are placed for one plan: searches of each do that part of the work that all may do."""


def place_containers(group: Group, part: Dataflow, room: Room, policy: Policy) -> Fit:
    """The group's containers as the policy places them; raises ``DoesNotFit``."""
    request = make_request(part, room.offers, policy.settings, racks=room.racks)
    chosen = load_policy(policy.name, policy.settings)
    if isinstance(chosen, MeasuredPolicy) and not is_offered(policy.settings):
        return _place_least(group, request, room, chosen)
    return _place_first(group, part, request, room, (policy, chosen))


def _place_least(group: Group, request: Request, room: Room, policy: MeasuredPolicy) -> Fit:
    """The least over all candidates; of equals the first, which is the planned shape where that fits."""
    best: tuple[Value, Fit] | None = None
    refusal, effort = None, Effort.share_out(room.groups)
    for shape in _list_candidates(group, request, room):
        offered = replace(request, offers=tuple(make_bins(group, request, shape, policy.name)))
        if not offered.offers:
            refusal = _explain_full(group, shape, room.offers)
            continue
        # Nothing can come of it: what was found measures no more than the least in this shape, and lacks no core.
        if best and (*policy.bound(offered), 0.0) >= best[0][: len(best[0]) - 2]:
            continue
        try:
            measured, schedule = policy.place(offered, best[0][: len(best[0]) - 3] if best else (), effort)
            fit = build_containers(group, request, shape, schedule, room.mb_per_core)
            _refuse_overfull(group, fit[0], room.offers)
        except DoesNotFit as refused:
            refusal = refused
            continue
        value = (*measured, *_measure_containers(group, request, fit[0]))
        if best is None or value < best[0]:
            best = value, fit
    if best is None:
        raise refusal or _refuse_all(group)
    return best[1]


def repack_as_sized(group: Group, part: Dataflow, room: Room, settings: PlacementSettings) -> tuple[Container, ...]:
    """The planner's containers; of a resident group dealt anew on their workers, if they then hold less."""
    if group.residency != "all" or is_offered(settings):
        return group.containers
    request = make_request(part, room.offers, settings, racks=room.racks)
    schedule = _describe_containers(group, request)
    first = group.containers[0]
    found = build_containers(group, request, Shape(first.cores, first.memory_mb), schedule, room.mb_per_core)[0]
    # As many containers as before are the same ones, with the planner's own rounding of what they need.
    return group.containers if len(found) == len(group.containers) else found


def _describe_containers(group: Group, request: Request) -> TaskSchedulePlan:
    """The group's containers as a policy would have told them."""
    known = {offer.worker: offer for offer in request.offers}
    offers = tuple(replace(known[box.worker], id=box.id, memory_mb=None, disk_mb=None) for box in group.containers)
    numbers = {step.id: step.number for step in request.steps}
    places = [[0] * step.parallelism for step in request.steps]
    for at, box in enumerate(group.containers):
        for step, index in box.instances:
            places[numbers[step]][index] = at
    return make_schedule(replace(request, offers=offers), places, "")


def _measure_containers(group: Group, request: Request, containers: Sequence[Container]) -> Value:
    """Cores that the group lacks, what its containers hold by cost, and how many they are."""
    cost = {offer.worker: offer.cost for offer in request.offers}
    held = sum(box.cores * cost[box.worker] for box in containers)
    return float(_count_lacking(group, request, containers)), round(held, 9), len(containers)


def _place_first(
    group: Group, part: Dataflow, request: Request, room: Room, named: tuple[Policy, PlacementPolicy]
) -> Fit:
    """In the first shape in which the group has all the cores it can use, else the first that fits."""
    policy, chosen = named
    refusal, narrow = None, None
    for shape in _list_shapes(group, request, room, policy.name):
        found = make_bins(group, request, shape, policy.name)
        if not found:
            # Shapes come with ever less to ask for: what lacks even for the last is what lacks.
            refusal = _explain_full(group, shape, room.offers)
            continue
        try:
            schedule = chosen.schedule(part, found, policy.state)
            fit = build_containers(group, request, shape, schedule, room.mb_per_core)
            _refuse_overfull(group, fit[0], room.offers)
        except DoesNotFit as refused:
            refusal = refused
            continue
        if not _count_lacking(group, request, fit[0]):
            return fit
        # The first that fits: shapes come in the order in which they are wanted.
        narrow = narrow or fit
    if narrow is None:
        raise refusal or _refuse_all(group)
    return narrow


def _explain_full(group: Group, shape: Shape, offers: Sequence[Offer]) -> DoesNotFit | None:
    """No worker has room for a container of ``shape`` beside the groups that run there."""
    rooms = [(offer.worker, (offer.memory_mb or 0, math.inf, offer.cores or 0)) for offer in offers]
    thing = f"a container with {shape.cores} cores beside the groups that run with it"
    return explain_shortage(f"group {group.id!r}", thing, (shape.memory_mb, 0, shape.cores), rooms)


def _refuse_all(group: Group) -> DoesNotFit:
    return DoesNotFit(f"group {group.id!r}", "workers", 1, 0, "workers")


def sum_by_worker(containers: Iterable[Container]) -> dict[str, Amounts]:
    """What containers take of each worker."""
    held: dict[str, Amounts] = {}
    for box in containers:
        held[box.worker] = held.get(box.worker, Amounts()) + Amounts(box.memory_mb, box.disk_mb, box.cores)
    return held


def _refuse_overfull(group: Group, containers: Sequence[Container], offers: Sequence[Offer]) -> None:
    """Raise ``DoesNotFit`` where a worker has less than the containers on it ask for."""
    # A policy fills containers of the offered shape. What stands by for others comes on top of what runs at once, so
    # the fullest can need more than the shape has; and all become as large as it.
    held = sum_by_worker(containers)
    for offer in offers:
        there = held.get(offer.worker, Amounts())
        for dimension, has, needed in (
            ("memory", offer.memory_mb, there.memory_mb),
            ("disk", offer.disk_mb, there.disk_mb),
        ):
            if has is not None and needed > has:
                raise DoesNotFit(
                    f"group {group.id!r}", f"{dimension} of its containers", needed, has, "MiB", offer.worker
                )


def _fix_shape(group: Group) -> Shape:
    """The planned one."""
    return Shape(group.containers[0].cores, group.containers[0].memory_mb, is_fixed=True)


def _list_candidates(group: Group, request: Request, room: Room) -> list[Shape]:
    if room.is_fixed:
        return [_fix_shape(group)]
    return list_candidates(group, request, room.container_cores, room.groups)


def _list_shapes(group: Group, request: Request, room: Room, policy: str) -> Iterable[Shape]:
    if room.is_fixed:
        return [_fix_shape(group)]
    if is_offered(request.settings):
        return list_offered_shapes(request, find_widest(request.steps), policy=policy)
    return list_shapes(group, request, policy)


def _count_lacking(group: Group, request: Request, found: Sequence[Container]) -> float:
    """Cores that it has less than were planned, or than it can keep busy."""
    if group.residency == "all":
        return 0
    planned = sum(box.cores for box in group.containers)
    wanted = count_busy_cores(group, [(step, step.parallelism) for step in request.steps])
    return max(0, min(planned, wanted) - sum(box.cores for box in found))
