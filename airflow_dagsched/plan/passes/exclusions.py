"""The problem that remains once groups have left out what a run does not need: narrower steps, fewer workers.

problem     a x4, b x2, c x1      on w1 w2 w3
left out    2 of a, all of c      group {a b} needs w1 alone
remaining   a x2, b x2            c takes no time, {a b} only on w1
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.lower_bound import LowerBound, bound_makespan
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.problem.exclusions import Exclusions
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.step_arrays import StepArrays
from airflow_dagsched.plan.pruning import count_remaining

UNCOUNTED = 1e12
"""MiB a second: bytes take no time."""


def apply_exclusions(problem: Problem, groups: Sequence[Group]) -> Problem:
    """What remains of ``problem`` without what ``groups`` leave out; itself where that is partitions at most."""
    # The same object, so that whoever asks whether anything is excluded need only compare identities.
    if not any(one.what != "partition" for group in groups for one in group.pruned):
        return problem
    workers, counts, allowed = problem.arrays.workers, dict[str, int](), dict[int, frozenset[str]]()
    for group in groups:
        found, there = count_remaining(group, problem.graph, workers)
        counts |= found
        if len(there) < len(workers):
            allowed[find_first_step(group, problem.graph)] = frozenset(worker.id for worker in there)
    idle_steps = frozenset(node for node, step in enumerate(problem.graph.steps) if step.id not in counts)
    declared = _narrow_steps(problem.declared, counts)
    return replace(
        problem,
        # Where nothing is drawn together both are one graph, and stay one.
        graph=declared if problem.graph is problem.declared else _narrow_steps(problem.graph, counts),
        declared=declared,
        # Fewer instances take fewer waves, and idle steps none: all that follows from them is worked out anew.
        arrays=StepArrays.of(declared, problem.cluster, problem.settings, idle_steps),
        exclusions=Exclusions(idle_steps, allowed),
    )


def exclude_pruned(draft: Draft) -> Draft:
    """The draft with what remains of the problem: what its groups leave out is not sized, nor timed."""
    remaining = apply_exclusions(draft.problem, draft.plan.groups)
    if remaining is draft.problem:
        return draft
    # The steps stand in the groups in the order that was searched for: what remains keeps it.
    evaluator = Evaluator(remaining, draft.evaluator.start_order)
    return replace(draft, evaluator=evaluator, bound=bound_remaining(remaining), chosen=None)


def bound_remaining(problem: Problem) -> LowerBound:
    """Where steps are left out, starts and spills may be, too: then only what steps compute counts."""
    if not problem.exclusions.idle_steps:
        return bound_makespan(problem)
    free = replace(problem.cluster, application_start_s=0.0, spill_mb_s=UNCOUNTED)
    return bound_makespan(replace(problem, cluster=free))


def find_first_step(group: Group, graph: Graph) -> int:
    """The node that stands for the group."""
    return min(graph.index[step] for step in group.steps)


def _narrow_steps(graph: Graph, counts: dict[str, int]) -> Graph:
    """With as many instances of each step as are left; of one that is left out they do not matter."""
    return replace(graph, steps=tuple(_narrow_step(step, counts) for step in graph.steps))


def _narrow_step(step: Step, counts: dict[str, int]) -> Step:
    count = counts.get(step.id, step.parallelism)
    return step if count == step.parallelism else replace(step, parallelism=count)
