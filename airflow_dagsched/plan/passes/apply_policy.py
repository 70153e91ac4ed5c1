"""The groups of a plan placed anew by a policy; order and, where a group has the cores it can use, times stay.

    shape 4 cores      w1 (8 free)    w1:0 [    ]  w1:1 [    ]      What a policy sees as workers are containers of the
    on two workers     w2 (4 free)    w2:0 [    ]                   group's shape, as many as each worker has room for.

A Spark application has one executor shape: it shrinks to what the fullest container runs at once, and containers that
got nothing are left out. Group after group is placed in the room that the others, as they then are, leave at the same
time: so the plan is sound at every step. A group without room for the policy's placement beside the others keeps the
planner's; one that the policy could not place on an idle cluster is refused.

A policy that knows of state levels it over whole workers: it is offered one container on each, if they are alike. What
it says of copies and movements is the plan's assignment; a group that kept the planner's containers is part of it, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import PLACEMENT, Dataflow
from airflow_dagsched.model.graph import rank_step
from airflow_dagsched.placement.containers.evidence import explain_shortage
from airflow_dagsched.placement.policies.auto import choose_policy
from airflow_dagsched.placement.policy import POLICIES, load_policy
from airflow_dagsched.placement.request import Request, make_request
from airflow_dagsched.placement.values import (
    Amounts,
    AssignmentPlan,
    Offer,
    TaskSchedulePlan,
    list_offers,
)
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.passes.assignment import assign_as_sized, join_assignments
from airflow_dagsched.plan.passes.container_offers import LEVELLING, Shape, list_shapes, make_bins
from airflow_dagsched.plan.passes.recompute_times import recompute_times
from airflow_dagsched.plan.passes.uniform_containers import build_containers, count_busy_cores, find_widest
from airflow_dagsched.plan.passes.whole_worker import is_offered, list_offered_shapes
from airflow_dagsched.plan.plan_types import Container, Group, Plan
from airflow_dagsched.plan.problem.run import Policy
from airflow_dagsched.plan.pruning import narrow_sources
from airflow_dagsched.plan.reasons.placement import KeptAsSized
from airflow_dagsched.plan.report.sentences import say_placement


def apply_policy(draft: Draft) -> Draft:
    """The draft with the containers of every group as its policy places them; as it is where none is named.

    Raises ``InvalidInput`` for a policy that there is not, ``DoesNotFit`` for what it refuses on the idle cluster.
    """
    run_policy, plan, dataflow = draft.problem.run.policy, draft.plan, draft.problem.declared.dataflow
    if run_policy is None:
        return draft
    named = list_named_policies(dataflow)
    if not run_policy.name and not named:
        return draft
    if run_policy.settings.twister2_compatible:
        raise InvalidInput(
            "settings", "twister2_compatible", "its placements lose and repeat instances: no Spark plans"
        )
    groups = {group.id: group for group in plan.groups}
    assigned: dict[str, AssignmentPlan] = {}
    # As they start: the first ones choose, as they would on the cluster.
    for group in sorted(plan.groups, key=lambda group: (group.start_s, group.id)):
        name = named.get(group.steps[0], run_policy.name)
        if group.containers and name:
            policy = replace(run_policy, name=name)
            groups[group.id], part = _place_group(group, dataflow, draft.problem.cluster, policy, list(groups.values()))
            assigned |= {group.id: part} if part else {}
    placed = replace(plan, groups=tuple(groups[group.id] for group in plan.groups))
    # Only if cores, or workers of pinned steps, have changed: rounding anew would change plans for nothing.
    if _list_timed_containers(placed) != _list_timed_containers(plan):
        placed = recompute_times(placed, draft.remaining)
    told = [assigned[group.id] for group in plan.groups if group.id in assigned]
    return replace(draft, plan=join_assignments(placed, told))


def list_named_policies(dataflow: Dataflow) -> dict[str, str]:
    """Step -> the policy it names. Since all settings are equal in one application, a group has one policy."""
    return {step.id: str(step.application[PLACEMENT]) for step in dataflow.steps if step.application.get(PLACEMENT)}


def _list_timed_containers(made: Plan) -> list[list[tuple[int, str]]]:
    """Of each container of a batch group: what its times depend on; the worker counts where steps are pinned."""
    batch = (group for group in made.groups if group.residency == "slots")
    return [[(box.cores, box.worker) for box in group.containers] for group in batch]


def _place_group(
    group: Group, dataflow: Dataflow, cluster: Cluster, policy: Policy, groups: Sequence[Group]
) -> tuple[Group, AssignmentPlan | None]:
    barred = {one.id for one in group.pruned if one.what == "worker"}
    part, idle = (
        narrow_to_group(dataflow, group),
        tuple(each for each in list_offers(cluster) if each.worker not in barred),
    )
    chosen, why = _resolve_policy(policy, make_request(part, idle, policy.settings))
    beside = [other for other in groups if other.id != group.id and _has_overlap(group, other)]
    try:
        found, schedule = _place_containers(group, part, _subtract_groups(idle, beside), chosen)
    except DoesNotFit as refused:
        if _may_refuse(chosen):
            # On the idle cluster: what does not fit even there is the policy's refusal, and no matter of timing.
            _place_containers(group, part, idle, chosen)
        reason = say_placement(KeptAsSized(chosen.name, refused, is_offered(policy.settings)))
        assigned = assign_as_sized(group, policy.state) if chosen.name == LEVELLING else None
        return replace(group, placement=f"{why}{reason}"), assigned
    driver = group.driver if group.driver.worker is None else replace(group.driver, worker=found[0].worker)
    placed = ": ".join(filter(None, (chosen.name, schedule.reason)))
    return replace(group, containers=found, driver=driver, placement=f"{why}{placed}"), schedule.assigned


def _resolve_policy(policy: Policy, request: Request) -> tuple[Policy, str]:
    """The policy that places, and why it where it was left open."""
    if policy.name != "auto":
        return policy, ""
    name, why = choose_policy(request)
    return replace(policy, name=name), f"{why}: "


def _may_refuse(policy: Policy) -> bool:
    """Whether the policy, or a cap, may forbid what has room: else the planner's containers show that all fits."""
    settings = policy.settings
    return policy.name not in POLICIES or bool(settings.max_instances_per_worker or settings.instances_per_container)


def narrow_to_group(dataflow: Dataflow, group: Group) -> Dataflow:
    """The dataflow of what is left of the group. One streaming step makes all of it resident."""
    # The policy sees what runs: instances that were pruned before would else get containers.
    names = set(group.steps) - {one.id for one in group.pruned if one.what == "step"}
    gone = Counter(one.id.rpartition("/")[0] for one in group.pruned if one.what == "instance")
    mode = "streaming" if group.residency == "all" else "batch"
    steps = [
        replace(step, mode=mode, parallelism=step.parallelism - gone[step.id], sources=narrow_sources(step, group))
        for step in dataflow.steps
        if step.id in names
    ]
    channels = [channel for channel in dataflow.channels if {channel.src, channel.dst} <= names]
    return Dataflow(name=group.id, steps=tuple(sorted(steps, key=rank_step)), channels=tuple(channels))


def _has_overlap(one: Group, other: Group) -> bool:
    return one.start_s < other.end_s and other.start_s < one.end_s


def _subtract_groups(offers: Sequence[Offer], groups: Sequence[Group]) -> tuple[Offer, ...]:
    """What the groups, if they all ran at once, would leave of each worker: never too much."""
    # As if all of them ran at once: groups that overlap this one need not overlap each other, but it is never too much.
    held = _sum_by_worker(box for group in groups for box in group.containers)
    for driver in (group.driver for group in groups):
        if driver.worker is not None:
            amounts = Amounts(driver.memory_mb, 0, driver.cores)
            held[driver.worker] = held.get(driver.worker, Amounts()) + amounts
    return tuple(_subtract_amounts(offer, held.get(offer.worker, Amounts())) for offer in offers)


def _sum_by_worker(containers: Iterable[Container]) -> dict[str, Amounts]:
    held: dict[str, Amounts] = {}
    for box in containers:
        held[box.worker] = held.get(box.worker, Amounts()) + Amounts(box.memory_mb, box.disk_mb, box.cores)
    return held


def _subtract_amounts(offer: Offer, taken: Amounts) -> Offer:
    pairs = zip(offer.list_values(), taken.list_values(), strict=True)
    memory, disk, cores = (None if has is None else max(0.0, has - gone) for has, gone in pairs)
    return replace(offer, memory_mb=memory, disk_mb=disk, cores=cores)


def _place_containers(
    group: Group, part: Dataflow, offers: Sequence[Offer], policy: Policy
) -> tuple[tuple[Container, ...], TaskSchedulePlan]:
    """The group's containers as the policy places them; raises ``DoesNotFit``.

    The first shape in which the group has all the cores it can use, else the first that fits.
    """
    request = make_request(part, offers, policy.settings)
    refusal, narrow = None, None
    for shape in _list_shapes(group, request, policy.name):
        found = make_bins(group, request, shape, policy.name)
        if not found:
            # Shapes come with ever less to ask for: what lacks even for the last is what lacks.
            refusal = _explain_full(group, shape, offers)
            continue
        try:
            schedule = load_policy(policy.name, policy.settings).schedule(part, found, policy.state)
            fit = build_containers(group, request, shape, schedule)
            _refuse_overfull(group, fit[0], offers)
        except DoesNotFit as refused:
            refusal = refused
            continue
        if _is_wide(group, request, fit[0]):
            return fit
        # The first that fits: shapes come in the order in which they are wanted.
        narrow = narrow or fit
    if narrow is None:
        raise refusal or DoesNotFit(f"group {group.id!r}", "workers", 1, 0, "workers")
    return narrow


def _explain_full(group: Group, shape: Shape, offers: Sequence[Offer]) -> DoesNotFit | None:
    """No worker has room for a container of ``shape`` beside the groups that run there."""
    rooms = [(offer.worker, (offer.memory_mb or 0, math.inf, offer.cores or 0)) for offer in offers]
    thing = f"a container with {shape.cores} cores beside the groups that run with it"
    return explain_shortage(f"group {group.id!r}", thing, (shape.memory_mb, 0, shape.cores), rooms)


def _refuse_overfull(group: Group, containers: Sequence[Container], offers: Sequence[Offer]) -> None:
    """Raise ``DoesNotFit`` where a worker has less than the containers on it ask for."""
    # A policy fills containers of the offered shape. What stands by for others comes on top of what runs at once, so
    # the fullest can need more than the shape has; and all become as large as it.
    held = _sum_by_worker(containers)
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


def _list_shapes(group: Group, request: Request, policy: str) -> Iterable[Shape]:
    if is_offered(request.settings):
        return list_offered_shapes(request, find_widest(request.steps), policy=policy)
    return list_shapes(group, request, policy)


def _is_wide(group: Group, request: Request, found: Sequence[Container]) -> bool:
    """Whether it has as many cores as were planned, or as it can keep busy."""
    planned = sum(box.cores for box in group.containers)
    wanted = count_busy_cores(group, [(step, step.parallelism) for step in request.steps])
    return group.residency == "all" or sum(box.cores for box in found) >= min(planned, wanted)
