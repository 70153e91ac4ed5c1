"""The search among groupings: from cutting nothing to one application per step, whichever ends first.

Evaluated first: the coarsest completable groups, as few groups as the rules allow, these with siblings dealt to a few
applications each, and one application per step. Besides, others in between (of few steps, all), while the budget lasts:
it counts steps and edges simulated, not seconds, so the choice is the same on every machine. The search ends early at
a plan that the lower bound proves as soon as any; up to 200 steps all but the deals are evaluated even then: people ask
what a plan saves.

Groupings are compared by what the launches in the order of the longest path take; then those that could end first
in another order, the best few and the three above, are compared by what each takes in its best order. Last, the
best is tried with other lists inside its groups: ``Selection.evaluator`` has the order that was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.lower_bound import KeptApart, LowerBound
from airflow_dagsched.plan.grouping.coarsest import find_coarsest
from airflow_dagsched.plan.grouping.fewest_applications import take_fewest
from airflow_dagsched.plan.grouping.front import WITHIN
from airflow_dagsched.plan.grouping.local_search import improve_locally
from airflow_dagsched.plan.grouping.proposals.all_groupings import list_groupings
from airflow_dagsched.plan.grouping.proposals.contraction import contract_longest_paths
from airflow_dagsched.plan.grouping.proposals.dealing import list_deals
from airflow_dagsched.plan.grouping.proposals.refinement import list_refinements, split_unjoined
from airflow_dagsched.plan.grouping.reorder_steps import reorder_steps
from airflow_dagsched.plan.grouping.selection import Candidate, Selection
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.step_arrays import measure_step_tails

BUDGET = 8_000
"""Steps and edges that may be simulated besides the first groupings."""
FEW = 6
"""Steps of which all groupings are looked at: some 200."""
COARSEST, FEWEST, PER_STEP = "cutting only what must be cut", "as few groups as can be", "one application per step"
DEALT = "siblings dealt to few applications"
PARTS, ALL = "unrelated steps apart", "the best of all groupings"
MERGED = "neighbours merged along the longest path"
SHOWN = 200
"""Steps for which one application per step is evaluated even if it cannot end sooner: people ask what a plan saves. Of
more that would take too long."""

Propose = Callable[[Selection], Iterator[Candidate]]


class Strategy(Struct, frozen=True):
    """What differs between problems in how their groupings are searched."""

    list_kept_apart: Callable[[Problem], KeptApart]
    """Steps that cannot share a group: for the lower bound."""
    set_budget: Callable[[Problem], int]
    propose_first: Propose
    """What is evaluated before one application per step."""
    propose_late: Propose
    """What is evaluated behind it."""
    take: Callable[[Selection], None]
    """Makes that grouping the best which is the plan's, of all that have been evaluated."""


def _propose_contracted(selection: Selection) -> Iterator[Candidate]:
    """From single steps on."""
    graph = selection.problem.graph
    for merged in contract_longest_paths(graph.loop, selection.evaluator):
        yield Candidate(MERGED, merged)
        # Merging may have joined groups that only wait for the same: apart, one of them may start sooner.
        yield Candidate(MERGED, split_unjoined(graph, merged))


BATCH = Strategy(lambda _: (), lambda _: BUDGET, lambda _: iter(()), _propose_contracted, take_fewest)


def search_groupings(evaluator: Evaluator, bound: LowerBound, strategy: Strategy = BATCH) -> Selection:
    """The best grouping found; raises ``DoesNotFit`` where not even single steps fit."""
    problem = evaluator.problem
    graph = problem.graph
    stages, group_of = find_coarsest(graph, problem.rules)
    selection = Selection(evaluator, bound, strategy.set_budget(problem), stages)
    # Before anything is evaluated: anchors stay among the finalists, whatever they cost.
    selection.anchors = {tuple(group_of), tuple(graph.loop)}
    selection.evaluate_grouping(COARSEST, group_of)
    # If all is one group already, the fewest groups are that one.
    if selection.best is None or len(selection.best.members) > 1:
        selection.anchors.add(tuple(selection.find_fewest()[1]))
        selection.evaluate_grouping(FEWEST, selection.find_fewest()[1])
    # Before single steps: these are evaluated only if none of the few cuts shows that they cannot end sooner.
    _evaluate_deals(selection)
    selection.evaluate_all(_propose_finer(selection, group_of))
    selection.evaluate_all(strategy.propose_first(selection))
    _evaluate_single_steps(selection)
    selection.evaluate_all(strategy.propose_late(selection))
    if selection.may_change():
        _try_changes(selection)
    return settle_orders(selection)


def settle_orders(selection: Selection) -> Selection:
    """The selection with the best orders, of launches and within groups; raises ``DoesNotFit`` where nothing fits."""
    # Behind all candidates: a search of orders costs as much as evaluating many groupings.
    selection.decide_launch_orders()
    if selection.best is None:
        assert selection.refusal is not None
        # Not even single steps fit: the last refusal says what is too large.
        raise selection.refusal
    # Last, for it changes the order in which all later evaluations would list a group's steps.
    reorder_steps(selection)
    return selection


def _evaluate_deals(selection: Selection) -> None:
    """Of the fewest groups, until one ends as soon as any; without regard to the budget, for there are but a few."""
    soonest_s = selection.best.cost.makespan_s if selection.best else math.inf
    gain_s = soonest_s - selection.bound.seconds
    for dealt in list_deals(selection.problem, selection.find_fewest()[1], gain_s):
        if not selection.may_gain() or selection.is_within(selection.bound.seconds):
            return
        # An anchor has a name that people know: few siblings may each be dealt to an application of its own.
        if tuple(dealt) not in selection.anchors:
            selection.evaluate_grouping(DEALT, dealt)


def _evaluate_single_steps(selection: Selection) -> None:
    """One application per step, unless of many steps it cannot end sooner."""
    problem, best = selection.problem, selection.best
    loop, few = problem.graph.loop, len(problem.graph.steps) <= SHOWN
    if best is None or (not selection.has_seen(loop) and (few or not _may_skip_single_steps(best, problem))):
        selection.evaluate_grouping(PER_STEP, loop)
    # As soon as any, but it holds less: what starts less often may hold less yet.
    if selection.best_kind == PER_STEP and selection.is_proved:
        selection.evaluate_grouping(PARTS, split_unjoined(problem.graph, selection.find_fewest()[1]))


def _try_changes(selection: Selection) -> None:
    """All groupings of few steps; else small changes to the best so far."""
    if len(selection.problem.graph.steps) > FEW:
        improve_locally(selection)
        return
    for group_of in list_groupings(selection.problem):
        if selection.is_open:
            selection.evaluate_grouping(ALL, group_of)


def _propose_finer(selection: Selection, group_of: Sequence[int]) -> Iterator[Candidate]:
    """From the coarse groupings on."""
    problem, few = selection.problem, selection.find_fewest()[1]
    bases = (few, group_of) if few != group_of else (few,)
    for base in bases:
        yield Candidate(PARTS, split_unjoined(problem.graph, base))
    for base in bases:
        for kind, finer in list_refinements(problem, base):
            yield Candidate(kind, finer)
            # Each cut twice: as it is, and with what no edge holds together apart, which needs no spill.
            yield Candidate(kind, split_unjoined(problem.graph, finer))


def _may_skip_single_steps(best: EvaluatedGrouping, problem: Problem) -> bool:
    """Whether one application per step cannot end so much sooner that it would be taken: by its core-seconds, or by
    its longest path.
    """
    graph, arrays, start = problem.graph, problem.arrays, problem.cluster.application_start_s
    held = sum(
        need.cores * (start + seconds * step.parallelism)
        for need, seconds, step in zip(arrays.needs, arrays.runtime_s, graph.steps, strict=False)
    )
    # Each step with a start of its own would hold more core-seconds than there are until the best ends.
    if best.cost.makespan_s * problem.arrays.room.cores <= held * (1 + WITHIN):
        return True
    seconds = [least + start if graph.is_step(node) else least for node, least in enumerate(arrays.least_s)]
    return best.cost.makespan_s <= max(measure_step_tails(graph, seconds)) * (1 + WITHIN)
