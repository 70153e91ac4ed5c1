"""The groups of a plan placed anew by a policy; sizes, order and times stay as planned.

    shape 4 cores      w1 (8 free)    w1:0 [    ]  w1:1 [    ]      What a policy sees as workers are containers of the
    on two workers     w2 (4 free)    w2:0 [    ]                   group's shape, as many as each worker has room for.

A Spark application has one executor shape: it shrinks to what the fullest container runs at once, and containers that
got nothing are left out. Group after group is placed in the room that the others, as they then are, leave at the same
time: so the plan is sound at every step. A group without room for the policy's placement beside the others keeps the
planner's; one that the policy could not place on an idle cluster is refused.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import step_rank
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.padding import held_at_once, memory_room, padded
from airflow_dagsched.placement.policy import POLICIES, policy_of
from airflow_dagsched.placement.request import Request, Work, request_of
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Amounts, Offer, TaskSchedulePlan, offers_of
from airflow_dagsched.plan.given import Pass
from airflow_dagsched.plan.hosts import with_hosts
from airflow_dagsched.plan.prune import sources_left
from airflow_dagsched.plan.values import Container, Group, Instance, Plan, Resources

SPREADING = "round_robin"
"""The policy that uses all workers: the cores that others put in few containers it has in one on each."""
NO_PADDING = {"ram_padding_mb": 0.0, "disk_padding_mb": 0.0, "cpu_padding": 0.0, "padding_percent": None}
"""The shape of a container has it already."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Which policy places, and with what it is told besides the dataflow and the workers."""

    name: str
    settings: PlacementSettings
    state: State


@dataclass(frozen=True, slots=True)
class Shape:
    """Cores and memory of each container of a group; MiB of padding included."""

    cores: int
    memory_mb: int


def by_policy(policy: Policy) -> Pass:
    """The same as a pass: on the containers of what pruning left."""
    return lambda made, given: placed_by(made, given.declared.dataflow, given.cluster, policy)


def placed_by(made: Plan, dataflow: Dataflow, cluster: Cluster, policy: Policy) -> Plan:
    """The plan with the containers of every group as the policy places them.

    Raises ``InvalidInput`` for a policy that there is not, ``DoesNotFit`` for what it refuses on the idle cluster.
    """
    if policy.settings.twister2_compatible:
        raise InvalidInput(
            "settings", "twister2_compatible", "its placements lose and repeat instances: no Spark plans"
        )
    groups = {group.id: group for group in made.groups}
    for group in sorted(made.groups, key=lambda group: (group.start_s, group.id)):
        if group.containers:
            groups[group.id] = _placed(group, dataflow, cluster, policy, list(groups.values()))
    return with_hosts(replace(made, groups=tuple(groups[group.id] for group in made.groups)), cluster)


def _placed(group: Group, dataflow: Dataflow, cluster: Cluster, policy: Policy, groups: Sequence[Group]) -> Group:
    part = part_of(dataflow, group)
    barred = {one.id for one in group.pruned if one.what == "worker"}
    idle = tuple(offer for offer in offers_of(cluster) if offer.worker not in barred)
    beside = [other for other in groups if other.id != group.id and _overlap(group, other)]
    try:
        found = _containers(group, part, _left(idle, beside), policy)
    except DoesNotFit:
        if _may_refuse(policy):
            _containers(group, part, idle, policy)
        return group
    driver = group.driver if group.driver.worker is None else replace(group.driver, worker=found[0].worker)
    return replace(group, containers=found, driver=driver)


def _may_refuse(policy: Policy) -> bool:
    """Whether the policy, or a cap, may forbid what has room: else the planner's containers show that all fits."""
    settings = policy.settings
    return policy.name not in POLICIES or bool(settings.max_instances_per_worker or settings.instances_per_container)


def part_of(dataflow: Dataflow, group: Group) -> Dataflow:
    """The dataflow of what is left of the group. One streaming step makes all of it resident."""
    names = set(group.steps) - {one.id for one in group.pruned if one.what == "step"}
    gone = Counter(one.id.rpartition("/")[0] for one in group.pruned if one.what == "instance")
    mode = "streaming" if group.residency == "all" else "batch"
    steps = [
        replace(step, mode=mode, parallelism=step.parallelism - gone[step.id], sources=sources_left(step, group))
        for step in dataflow.steps
        if step.id in names
    ]
    channels = [channel for channel in dataflow.channels if {channel.src, channel.dst} <= names]
    return Dataflow(name=group.id, steps=tuple(sorted(steps, key=step_rank)), channels=tuple(channels))


def _overlap(one: Group, other: Group) -> bool:
    return one.start_s < other.end_s and other.start_s < one.end_s


def _left(offers: Sequence[Offer], groups: Sequence[Group]) -> tuple[Offer, ...]:
    """What the groups, if they all ran at once, would leave of each worker: never too much."""
    held: dict[str, Amounts] = {}
    for group in groups:
        taken = [(box.worker, Amounts(box.memory_mb, box.disk_mb, box.cores)) for box in group.containers]
        if group.driver.worker is not None:
            taken.append((group.driver.worker, Amounts(group.driver.memory_mb, 0, group.driver.cores)))
        for worker, amounts in taken:
            held[worker] = held.get(worker, Amounts()) + amounts
    return tuple(_without(offer, held.get(offer.worker, Amounts())) for offer in offers)


def _without(offer: Offer, taken: Amounts) -> Offer:
    pairs = zip(offer.values(), taken.values(), strict=True)
    memory, disk, cores = (None if has is None else max(0.0, has - gone) for has, gone in pairs)
    return dataclasses.replace(offer, memory_mb=memory, disk_mb=disk, cores=cores)


def _containers(group: Group, part: Dataflow, offers: Sequence[Offer], policy: Policy) -> tuple[Container, ...]:
    """The group's containers as the policy places them; raises ``DoesNotFit``."""
    request = request_of(part, offers, policy.settings)
    refusal = DoesNotFit(f"group {group.id!r}", "containers beside the groups that run with it", 1, 0, "containers")
    for shape in _shapes(group, request, policy):
        bins = _bins(group, request, shape, policy)
        if not bins:
            continue
        inside = policy_of(policy.name, replace(policy.settings, **NO_PADDING))
        try:
            return _built(group, request, shape, inside.schedule(part, bins, policy.state))
        except DoesNotFit as refused:
            refusal = refused
    raise refusal


def _shapes(group: Group, request: Request, policy: Policy) -> Iterator[Shape]:
    """Sizes of a container to try: the planned cores, in batch fewer where there is no room for that.

    A policy that uses all workers tries first what is left for each if they share the planned cores evenly.
    """
    planned = group.containers[0].cores
    least = math.ceil(max(work.needs.cores for work in request.works))
    if policy.name == SPREADING:
        even = math.ceil(planned * len(group.containers) / max(1, len(request.offers)))
        yield from (_shape(group, request, cores) for cores in range(max(least, even), planned))
    yield from (_shape(group, request, cores) for cores in range(planned, least - 1, -1))


def _shape(group: Group, request: Request, cores: int) -> Shape:
    """A container of so many cores: of a batch group with memory for whatever could run in it at once.

    Of a streaming one with fewer cores than planned it has its share of the memory, and one instance more.
    """
    counts = [(work, work.parallelism) for work in request.works]
    planned = group.containers[0]
    if group.residency == "slots":
        return Shape(cores, math.ceil(padded(held_at_once(request, counts, cores), request.settings).memory_mb))
    most = max(work.needs.memory_mb for work in request.works)
    share = held_at_once(request, counts).memory_mb * cores / planned.cores / len(group.containers)
    wanted = math.ceil(padded(Amounts(share + most), request.settings).memory_mb)
    return Shape(cores, planned.memory_mb if cores == planned.cores else min(wanted, planned.memory_mb))


def _bins(group: Group, request: Request, shape: Shape, policy: Policy) -> list[Offer]:
    """Containers of the shape, as many as each worker has room for.

    One a worker where its instances are capped. To use all workers, as many as an even share of the planned cores
    takes, and numbered so that a turn goes round the workers before it comes to the second container of one.
    """
    inside, made = memory_room(shape.memory_mb, request.settings), []
    share = len(group.containers) * group.containers[0].cores / shape.cores / max(1, len(request.offers))
    most = 1 if request.cap else math.ceil(share) if policy.name == SPREADING else None
    for offer in request.offers:
        copies = min(int((offer.cores or 0) // shape.cores), int((offer.memory_mb or 0) // max(1, shape.memory_mb)))
        copies = copies if most is None else min(copies, most)
        disk = None if offer.disk_mb is None else max(0, offer.disk_mb - copies * request.settings.disk_padding_mb)
        one = dataclasses.replace(offer, memory_mb=inside, disk_mb=disk, cores=shape.cores)
        made += [dataclasses.replace(one, id=_bin_id(offer, at, policy)) for at in range(copies)]
    return made


def _bin_id(offer: Offer, at: int, policy: Policy) -> str:
    return f"{at}:{offer.worker}" if policy.name == SPREADING else f"{offer.worker}:{at}"


def _built(group: Group, request: Request, shape: Shape, schedule: TaskSchedulePlan) -> tuple[Container, ...]:
    """Containers of one shape, as small as the fullest allows."""
    works = {work.step: work for work in request.works}
    counts = [_counts(works, [one.step for one in box.instances]) for box in schedule.container_plan]
    cores = min(shape.cores, max(math.ceil(_busy(group, held)) for held in counts))
    required = [_required(group, request, held, cores) for held in counts]
    memory = max(needed.memory_mb for needed in required)
    pairs = zip(schedule.container_plan, required, strict=True)
    return tuple(
        Container(
            id=f"{group.id}/{at}",
            worker=box.worker,
            instances=_in_order(group, [(one.step, one.index) for one in box.instances]),
            required=needed,
            cores=cores,
            memory_mb=memory,
            disk_mb=needed.disk_mb,
        )
        for at, (box, needed) in enumerate(pairs)
    )


def _counts(works: Mapping[str, Work], steps: Sequence[str]) -> list[tuple[Work, int]]:
    counts: dict[str, int] = {}
    for step in steps:
        counts[step] = counts.get(step, 0) + 1
    return [(works[step], count) for step, count in counts.items()]


def _busy(group: Group, counts: Sequence[tuple[Work, int]]) -> float:
    """Cores that the container can keep busy: those of all instances, in batch of the widest steps side by side."""
    widths = sorted((work.needs.cores * count for work, count in counts), reverse=True)
    return sum(widths if group.residency == "all" else widths[: group.slots])


def _required(group: Group, request: Request, counts: Sequence[tuple[Work, int]], cores: int) -> Resources:
    held = held_at_once(request, counts, None if group.residency == "all" else cores)
    needed = padded(held, request.settings)
    return Resources(
        cores=math.ceil(held.cores), memory_mb=math.ceil(needed.memory_mb), disk_mb=math.ceil(needed.disk_mb)
    )


def _in_order(group: Group, instances: Sequence[Instance]) -> tuple[Instance, ...]:
    rank = {step: at for at, step in enumerate(group.steps)}
    return tuple(sorted(instances, key=lambda instance: (rank[instance[0]], instance[1])))
