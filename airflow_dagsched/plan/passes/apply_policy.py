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

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.dataflow import PLACEMENT, Dataflow
from airflow_dagsched.model.graph import rank_step
from airflow_dagsched.placement.policies.auto import RIVALS, choose_policy, describe_comparison, is_comparable
from airflow_dagsched.placement.policy import POLICIES
from airflow_dagsched.placement.request import Request, make_request
from airflow_dagsched.placement.values import Amounts, AssignmentPlan, Offer, TaskSchedulePlan, list_offers
from airflow_dagsched.plan.costing.demand import AS_NEEDED, find_size
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.passes.assignment import assign_as_sized, join_assignments
from airflow_dagsched.plan.passes.compare_placed import compare_placed
from airflow_dagsched.plan.passes.containers.choose_shape import Room, place_containers, repack_as_sized, sum_by_worker
from airflow_dagsched.plan.passes.containers.container_offers import LEVELLING
from airflow_dagsched.plan.passes.containers.whole_worker import is_offered
from airflow_dagsched.plan.passes.recompute_times import recompute_times
from airflow_dagsched.plan.passes.written_rows import add_written_rows, is_stored_on_workers
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.problem.problem import Problem
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
    rows_stay = is_stored_on_workers(dataflow, draft.problem.cluster)
    assigned: dict[str, AssignmentPlan] = {}
    # As they start: the first ones choose, as they would on the cluster.
    for group in sorted(plan.groups, key=lambda group: (group.start_s, group.id)):
        name = named.get(group.steps[0], run_policy.name)
        if group.containers and name:
            policy = replace(run_policy, name=name)
            groups[group.id], part = _place_group(
                group, draft.problem, policy, list(groups.values()), rows_stay=rows_stay
            )
            assigned |= {group.id: part} if part else {}
    placed = replace(plan, groups=tuple(groups[group.id] for group in plan.groups))
    # Only if cores, or workers of pinned steps, have changed: rounding anew would change plans for nothing.
    if _list_timed_containers(placed) != _list_timed_containers(plan):
        placed = recompute_times(placed, draft.remaining)
    if _list_held(placed) != _list_held(plan):
        placed = compare_placed(placed, draft.problem.settings)
    told = [assigned[group.id] for group in plan.groups if group.id in assigned]
    return replace(draft, plan=join_assignments(placed, told))


def list_named_policies(dataflow: Dataflow) -> dict[str, str]:
    """Step -> the policy it names. Since all settings are equal in one application, a group has one policy."""
    return {step.id: str(step.application[PLACEMENT]) for step in dataflow.steps if step.application.get(PLACEMENT)}


def _list_timed_containers(made: Plan) -> list[list[tuple[int, str]]]:
    """Of each container of a batch group: what its times depend on; the worker counts where steps are pinned."""
    batch = (group for group in made.groups if group.residency == "slots")
    return [[(box.cores, box.worker) for box in group.containers] for group in batch]


def _list_held(made: Plan) -> list[tuple[int, float]]:
    """Of each group: the cores that it holds, and for how long."""
    return [(sum(box.cores for box in group.containers), group.time.total_s) for group in made.groups]


def _place_group(
    group: Group, problem: Problem, policy: Policy, groups: Sequence[Group], *, rows_stay: bool
) -> tuple[Group, AssignmentPlan | None]:
    """:param rows_stay: whether what is written lies on the host of who writes it."""
    part, idle = narrow_to_group(problem.declared.dataflow, group), _measure_room(group, problem, len(groups))
    if rows_stay:
        part = _add_earlier_rows(part, group, problem, groups)
    chosen, why = _resolve_policy(policy, make_request(part, idle.offers, policy.settings))
    beside = [other for other in groups if other.id != group.id and _has_overlap(group, other)]
    left = replace(idle, offers=_subtract_groups(idle.offers, beside))
    try:
        found, schedule = place_containers(group, part, left, chosen)
    except DoesNotFit as refused:
        if _may_refuse(chosen):
            # On the idle cluster: what does not fit even there is the policy's refusal, and no matter of timing.
            place_containers(group, part, idle, chosen)
        reason = say_placement(KeptAsSized(chosen.name, refused, is_offered(policy.settings)))
        assigned = assign_as_sized(group, policy.state) if chosen.name == LEVELLING else None
        kept = replace(group, containers=repack_as_sized(group, part, left, chosen.settings))
        return replace(kept, placement=f"{why}{reason}"), assigned
    driver = group.driver if group.driver.worker is None else replace(group.driver, worker=found[0].worker)
    compared = _compare_rival(group, part, left, chosen, schedule) if policy.name == "auto" else ""
    reason = "; ".join(filter(None, (schedule.reason, compared)))
    placed = ": ".join(filter(None, (chosen.name, reason)))
    return replace(group, containers=found, driver=driver, placement=f"{why}{placed}"), schedule.assigned


def _add_earlier_rows(part: Dataflow, group: Group, problem: Problem, groups: Sequence[Group]) -> Dataflow:
    """The part with the rows that groups write which end before ``group`` begins."""
    earlier = [other for other in groups if other.end_s <= group.start_s and other.id != group.id]
    return add_written_rows(part, problem.declared.dataflow.channels, earlier, problem.cluster)


def _measure_room(group: Group, problem: Problem, groups: int) -> Room:
    """What the group may have of an idle cluster: none of the workers that were left out for it."""
    barred = {one.id for one in group.pruned if one.what == "worker"}
    offers, workers = list_offers(problem.cluster), problem.cluster.workers
    memory, cores = sum(one.free_memory_mb for one in workers), sum(one.free_cores for one in workers)
    return Room(
        offers=tuple(each for each in offers if each.worker not in barred),
        racks={worker.host: worker.rack for worker in workers if worker.rack is not None},
        mb_per_core=max(1.0, memory / max(1, cores)),
        container_cores=problem.settings.container_cores,
        is_fixed=_is_sized_by_author(group, problem),
        groups=groups,
    )


def _is_sized_by_author(group: Group, problem: Problem) -> bool:
    nodes = [problem.graph.index[step] for step in group.steps]
    return group.residency == "slots" and find_size(nodes, problem) != AS_NEEDED


def _compare_rival(group: Group, part: Dataflow, left: Room, chosen: Policy, schedule: TaskSchedulePlan) -> str:
    """What the policy that was chosen gains over another, where that can be told in little time."""
    request = make_request(part, left.offers, chosen.settings)
    if not is_comparable(request):
        return ""
    try:
        rival = place_containers(group, part, left, replace(chosen, name=RIVALS[chosen.name]))[1].assignment
    except DoesNotFit:
        rival = None
    return describe_comparison(chosen.name, request, schedule.assignment, rival, chosen.state.previous)


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
    held = sum_by_worker(box for group in groups for box in group.containers)
    for driver in (group.driver for group in groups):
        if driver.worker is not None:
            amounts = Amounts(driver.memory_mb, 0, driver.cores)
            held[driver.worker] = held.get(driver.worker, Amounts()) + amounts
    return tuple(_subtract_amounts(offer, held.get(offer.worker, Amounts())) for offer in offers)


def _subtract_amounts(offer: Offer, taken: Amounts) -> Offer:
    pairs = zip(offer.list_values(), taken.list_values(), strict=True)
    memory, disk, cores = (None if has is None else max(0.0, has - gone) for has, gone in pairs)
    return replace(offer, memory_mb=memory, disk_mb=disk, cores=cores)
