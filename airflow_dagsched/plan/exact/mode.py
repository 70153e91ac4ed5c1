"""The exact mode, for small dataflows: all there is tried, or a solver's bound and what it finds.

    up to 8 steps     all groupings, lists inside groups and orders of launches (see ``enumeration``)
    more              the heuristic's plan ── changes ──> solver: bound, grouping or order ── changes ──> plan
                      (resident steps: with a bound by phases first, see ``phases``)

The solver's model is a relaxation of the planner's (see ``model``), so its bound holds for every plan; what it
finds is priced by the one cost model, kept where it is better, and changed a little at a time as long as that helps.
The better the plan it starts from, the less is left for it to look at.
All budgets are counted: equal facts, equal plans. The solver needs the extra ``[exact]``. The command line's alone:
never at a parse.
"""

from __future__ import annotations

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.collector import pause_collector
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.costing.lower_bound import LowerBound
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.exact.enumeration import Solved, solve_tiny_dataflow
from airflow_dagsched.plan.exact.model import solve_model
from airflow_dagsched.plan.exact.phases import bound_by_phases
from airflow_dagsched.plan.grouping.candidates import search_groupings
from airflow_dagsched.plan.grouping.fewest_applications import take_fewest
from airflow_dagsched.plan.grouping.local_search import improve_locally
from airflow_dagsched.plan.grouping.reorder_steps import reorder_steps
from airflow_dagsched.plan.grouping.selection import Selection
from airflow_dagsched.plan.passes.select_groups import choose_strategy, describe_selection, search_problem
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import PASSES, run_passes
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import NO_RUN, Run
from airflow_dagsched.plan.reasons.bounds import GroupingsTried
from airflow_dagsched.plan.settings import DEFAULTS, Settings

BUDGET = 1.5
"""Deterministic seconds of the solver: about as many of one core."""
POLISH = 300_000
"""Steps and edges that may be simulated in changes to what was found: about a second."""
KIND = "found by the exact mode"


@pause_collector
def plan_exactly(dataflow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS, *, run: Run = NO_RUN) -> Plan:
    """The plan with what a solver proves, and finds, within its budget; for small dataflows.

    Raises ``InvalidInput`` also where the extra ``[exact]`` is not installed.
    """
    # All other passes are the same: what is exact is the choice of groups alone.
    passes = select_groups_exactly, *PASSES[1:]
    return run_passes(passes, dataflow, Problem.of(dataflow, cluster, settings, run))


def select_groups_exactly(draft: Draft) -> Draft:
    """The pass that takes the place of ``select_groups``; raises as ``plan_exactly`` does."""
    selection = search_exactly(draft.problem)
    take_fewest(selection)
    return describe_selection(draft, selection)


def search_exactly(problem: Problem, budget: float = BUDGET) -> Selection:
    """The best grouping found, among what it was compared with; with the bound, and the order of the lists.

    Raises ``InvalidInput`` where a solver is needed without the extra ``[exact]``, ``DoesNotFit`` where nothing fits.
    """
    selection = search_problem(problem)
    if selection.best is None or selection.is_proved:
        return selection
    phases = bound_by_phases(problem)
    if phases.seconds > selection.bound.seconds:
        selection.bound = phases
    tiny = solve_tiny_dataflow(selection.evaluator, selection.best)
    if tiny is not None:
        selection.evaluator = tiny.evaluator
        if tiny.evaluated is not selection.best:
            selection.keep_if_better(KIND, tiny.evaluated)
        # With failures the costs compared are not the times told: an optimum of the one is no bound of the other.
        if tiny.proved and not problem.settings.failures_per_hour:
            selection.bound = _bound_by_optimum(tiny)
            return selection
    # Before the solver: a better plan to start from leaves it less to refute.
    _improve_best(selection)
    selection = _search_by_solver(selection, budget)
    # What the solver found may be rough: its model knows no single workers.
    if selection.best_kind == KIND:
        _improve_best(selection)
    return selection


def _improve_best(selection: Selection) -> None:
    """Small changes to the best, as long as none can be proved to be in vain."""
    selection.budget = POLISH
    if selection.is_open:
        improve_locally(selection)
        selection.decide_launch_orders()
        reorder_steps(selection, POLISH, POLISH)


def _bound_by_optimum(tiny: Solved) -> LowerBound:
    """There is no better plan than the best of all."""
    return LowerBound(tiny.evaluated.cost.makespan_s, GroupingsTried(tiny.tried))


def _search_by_solver(selection: Selection, budget: float) -> Selection:
    """The selection with the solver's bound, and what it found where that is better."""
    found = solve_model(selection, budget)
    if found is None:
        return selection
    if found.bound_s > selection.bound.seconds:
        selection.bound = LowerBound(found.bound_s, "solver")
    if found.order is not None:
        return _search_reordered(selection, found.order)
    if found.group_of is not None:
        selection.evaluate_grouping(KIND, found.group_of)
        selection.decide_launch_orders()
    return selection


def _search_reordered(selection: Selection, order: tuple[int, ...]) -> Selection:
    """The search anew with the solver's order inside groups, where that is better."""
    evaluator = selection.evaluator.reorder_starts(order)
    other = search_groupings(evaluator, selection.bound, choose_strategy(selection.problem))
    assert selection.best is not None
    assert other.best is not None
    if other.best.cost >= selection.best.cost:
        return selection
    # What was compared before counts as well: a plan tells all it was better than.
    for found in selection.front.by_count.values():
        other.front.keep_if_unbeaten(found)
    other.costs = {**other.costs, **selection.costs, KIND: other.best.cost}
    other.best_kind = KIND
    return other
