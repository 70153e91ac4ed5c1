"""The pass that prunes: each group leaves out partitions, steps, instances and workers that the run does not need.

    select_groups ──prune_inputs──> what each group leaves out ──schedule_groups──> containers of what remains

Words. What is *left out* is a value of the group, with its reason. What *remains* is a problem of its own, from which
later passes size and time the groups.

Guarantee. The groups stay as they are: whose launch task a step is in is not decided anew for each run. The workers
that hold the data may be too small: a group that does not fit there keeps them all. A wrong guess costs time, it
never refuses.
"""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.passes.exclusions import apply_exclusions, bound_remaining, find_first_step
from airflow_dagsched.plan.plan_types import Group, Pruned
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.pruning import prune_groups
from airflow_dagsched.plan.reasons.pruning import NoRoomForGroup
from airflow_dagsched.plan.report.sentences import say_workers_kept


def prune_inputs(draft: Draft) -> Draft:
    """The draft, each group with what it leaves out; as it is where nothing is known of what the steps read."""
    problem = draft.problem
    if not has_inputs(problem):
        return draft
    pruned = prune_groups(
        draft.plan,
        problem.declared,
        problem.cluster,
        problem.run.pruning_input,
        selections=problem.run.selections,
        settings=problem.settings,
    )
    # An evaluator of its own: the draft's has sized these steps with all their instances.
    remaining = Evaluator(apply_exclusions(problem, pruned.groups))
    groups = [keep_workers_if_short(group, remaining) for group in pruned.groups]
    return exclude_pruned(draft.replace_groups(groups))


def exclude_pruned(draft: Draft) -> Draft:
    """The draft with what remains of the problem: what its groups leave out is not sized, nor timed."""
    remaining = apply_exclusions(draft.problem, draft.plan.groups)
    if remaining is draft.problem:
        return draft
    # The steps stand in the groups in the order that was searched for: what remains keeps it.
    evaluator = Evaluator(remaining, draft.evaluator.start_order)
    return replace(draft, evaluator=evaluator, bound=bound_remaining(remaining), chosen=None)


def has_inputs(problem: Problem) -> bool:
    """Whether anything is known, or at least named, of what steps read from outside."""
    told = problem.run.pruning_input
    # Without any of these nothing could be left out, and a plan says nothing of what was not asked for.
    return bool(told.empty or told.idle or told.stored) or any(step.sources for step in problem.graph.steps)


def keep_workers_if_short(group: Group, evaluator: Evaluator) -> Group:
    """The group with all workers, and why, where it does not fit on those it needs."""
    if not any(one.what == "worker" for one in group.pruned):
        return group
    graph, idle_steps = evaluator.problem.graph, evaluator.problem.exclusions.idle_steps
    running = [graph.index[step] for step in group.steps if graph.index[step] not in idle_steps]
    try:
        evaluator.size_where_allowed(find_first_step(group, graph), group.id, running)
    except DoesNotFit as refused:
        stays = Pruned(what="worker", id=group.id, reason=say_workers_kept(NoRoomForGroup(refused)))
        # The data is then read from elsewhere: that is slower, and the partitions and steps stay left out.
        kept = tuple(one for one in group.pruned if one.what != "worker")
        return replace(group, pruned=kept, unpruned=(*group.unpruned, stays))
    return group
