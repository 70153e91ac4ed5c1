"""The pass that prunes: each group leaves out partitions, steps, instances and workers that the run does not need.

    select_groups ──prune_inputs──> what each group leaves out ──schedule_groups──> containers of what remains

Words. What is *left out* is a value of the group, with its reason. What *remains* is a problem of its own, from which
later passes size and time the groups.

Guarantee. The groups stay as they are: whose launch task a step is in is not decided anew for each run. The workers
that hold the data may be too small, or too few: a group that does not fit there, or with which the run would end later,
gets others, too. A wrong guess costs time, it never refuses.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.passes.choose_holders import choose_holders, leaves_workers_out
from airflow_dagsched.plan.passes.exclusions import exclude_pruned
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.pruning import prune_groups


def prune_inputs(draft: Draft) -> Draft:
    """The draft, each group with what it leaves out; as it is where nothing is known of what the steps read."""
    problem = draft.problem
    if not has_inputs(problem):
        return draft
    fewest = _prune_groups(draft, with_all_holders=False)
    if not any(leaves_workers_out(group) for group in fewest):
        return exclude_pruned(draft.replace_groups(fewest))
    holders = _prune_groups(draft, with_all_holders=True)
    return exclude_pruned(draft.replace_groups(choose_holders(draft, fewest, holders)))


def _prune_groups(draft: Draft, *, with_all_holders: bool) -> Sequence[Group]:
    problem = draft.problem
    return prune_groups(
        draft.plan,
        problem.declared,
        problem.cluster,
        problem.run.pruning_input,
        selections=problem.run.selections,
        settings=problem.settings,
        with_all_holders=with_all_holders,
    ).groups


def has_inputs(problem: Problem) -> bool:
    """Whether anything is known, or at least named, of what steps read from outside."""
    told = problem.run.pruning_input
    # Without any of these nothing could be left out, and a plan says nothing of what was not asked for.
    return bool(told.empty or told.idle or told.stored) or any(step.sources for step in problem.graph.steps)
