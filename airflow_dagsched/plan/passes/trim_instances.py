"""The pass that trims: copies of a step to which no rows come are not started, once the groups are placed.

    a x4, of which only w1 holds rows      w1 [a0 a2 b0]  w2 [a1 a3]      ──>      w1 [a0 a2 b0]

Where rows come to is known only once instances have workers: so this pass comes after the policy, and mends what the
policy said. Guarantee. Containers only get smaller or go; times and assignment are those of what is left.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from airflow_dagsched.plan.costing.demand import Demand, Share, make_demand
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.passes.assignment import drop_instances
from airflow_dagsched.plan.passes.compare_placed import compare_placed
from airflow_dagsched.plan.passes.exclusions import apply_exclusions
from airflow_dagsched.plan.passes.prune_inputs import has_inputs
from airflow_dagsched.plan.passes.recompute_times import recompute_times
from airflow_dagsched.plan.plan_types import Container, Group
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.pruning import trim_instances as trim_groups


def trim_instances(draft: Draft) -> Draft:
    """The draft without instances to which no rows come; the containers need what is left in them."""
    problem = draft.problem
    if not has_inputs(problem):
        return draft
    run = problem.run
    trimmed = trim_groups(draft.plan, problem.declared, problem.cluster, run.pruning_input, selections=run.selections)
    pairs = list(zip(draft.plan.groups, trimmed.groups, strict=True))
    groups = tuple([now if now is before else _resize_group(now, problem) for before, now in pairs])
    # Nothing went: no plan changes for having been looked at.
    if groups == draft.plan.groups:
        return draft
    gone = {one.id for _, group in pairs for one in group.pruned if one.what == "instance"}
    plan = drop_instances(replace(trimmed, groups=groups), gone)
    # Fewer instances on fewer containers: what is left may take more waves than before, or fewer.
    timed = recompute_times(plan, apply_exclusions(problem, groups))
    return replace(draft, plan=compare_placed(timed, problem.settings))


def _resize_group(group: Group, problem: Problem) -> Group:
    nodes = [problem.graph.index[step] for step in group.steps]
    return replace(group, containers=tuple(_resize_containers(group, make_demand(group.id, nodes, problem), problem)))


def _drop_cores(container: Container) -> Container:
    """What has lost its last instance runs nothing."""
    return replace(container, cores=0, required=replace(container.required, cores=0))


def _resize_containers(group: Group, demand: Demand, problem: Problem) -> Iterator[Container]:
    for container in group.containers:
        if container.standbys or container.warmups:
            # What copies of state need only the policy knows: without some of them it asked for more than enough.
            yield container if container.instances else _drop_cores(container)
            continue
        needs = [problem.arrays.needs[problem.graph.index[step]] for step, _ in container.instances]
        needed = Share(list(container.instances), needs).sum_required(demand, container.cores)
        # Cores and memory stay: all containers of an application are equal, and the fullest may have lost nothing.
        yield replace(container, required=needed, disk_mb=min(container.disk_mb, needed.disk_mb))
