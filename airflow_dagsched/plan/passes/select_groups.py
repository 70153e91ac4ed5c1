"""The pass that selects the groups: which steps run as one application, and which channels are cut between them.

    a ══> b ══> c            {a b}, {c}: one of many groupings, each evaluated by simulating it,
    (t, 3 h) ──> c           because c would keep a and b waiting for t

Words. A *grouping* says for each step the first step of its group. A *strategy* says which groupings are looked at:
where steps stream they hold what they need from start to end, so more is looked at, in a room of its own
(``resident``) that nothing loads for a batch plan.

Groups that are fixed (``Run.groups``: the launch tasks of a DAG) are evaluated as they are; only in which order they
are launched, and their steps start, is searched.

Guarantee. Of groups that are not: cutting nothing but what must be cut, as few groups as can be, and (unless it cannot
be taken) one application per step are always among what is compared: the plan ends at most 1% later than the soonest of
all, and none that does so, too, has fewer groups. Where steps stream runtimes are not taken at their word: see
``resident.plausible``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping, name_group
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.lower_bound import LowerBound, bound_makespan
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.grouping.candidates import BATCH, Strategy, search_groupings, settle_orders
from airflow_dagsched.plan.grouping.coarsest import find_coarsest, find_fewest, refuse_clash
from airflow_dagsched.plan.grouping.reasons import Reasons
from airflow_dagsched.plan.grouping.savings import Savings, list_compared
from airflow_dagsched.plan.grouping.selection import Selection
from airflow_dagsched.plan.grouping.spills import find_spills
from airflow_dagsched.plan.grouping.stages import Stages
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import NO_RUN, FixedGroup, Run
from airflow_dagsched.plan.reasons.grouping import CutReason
from airflow_dagsched.plan.report.group_sentences import say_group
from airflow_dagsched.plan.settings import DEFAULTS, Settings

FIXED = "the launch tasks as they are"
NO_BUDGET = 0
"""Of steps and edges that may be simulated: of groups that are fixed no others are looked at."""


def select_groups(draft: Draft) -> Draft:
    """The draft with its groups and spills, the best of those compared; raises ``DoesNotFit``."""
    selection = search_problem(draft.problem)
    if draft.problem.run.groups is None:
        choose_strategy(draft.problem).take(selection)
    return describe_selection(draft, selection)


def search_problem(problem: Problem) -> Selection:
    """The best grouping of a problem, by the strategy that suits it; raises ``DoesNotFit``."""
    strategy = choose_strategy(problem)
    bound = bound_makespan(problem, strategy.list_kept_apart(problem))
    if problem.run.groups is not None:
        return _take_groups(problem, problem.run.groups, bound)
    return search_groupings(Evaluator(problem), bound, strategy)


def _take_groups(problem: Problem, groups: Sequence[FixedGroup], bound: LowerBound) -> Selection:
    """The grouping that is fixed, in its best orders.

    Raises ``DoesNotFit``, and ``InvalidInput`` where it is none of this dataflow, or its groups wait for each other.
    """
    stages, _ = find_coarsest(problem.graph, problem.rules)
    selection = Selection(Evaluator(problem), bound, NO_BUDGET, stages)
    selection.evaluate_grouping(FIXED, _map_groups(problem, groups))
    return settle_orders(selection)


def _map_groups(problem: Problem, groups: Sequence[FixedGroup]) -> list[int]:
    """For each node the first node of its group; raises ``InvalidInput`` for groups that no plan may have."""
    graph = problem.graph
    named = Counter(step for group in groups for step in group.steps)
    odd = (set(named) ^ set(graph.ids[: len(graph.steps)])) | {step for step, count in named.items() if count > 1}
    if odd:
        raise InvalidInput("groups", "steps", f"step {sort_naturally(odd)[0]!r} must be in exactly one of them")
    homes = list(range(len(graph.ids)))
    for group in groups:
        nodes = [graph.index[step] for step in group.steps]
        if not problem.rules.may_share(nodes, graph.loop):
            raise InvalidInput("groups", group.id, "its author, or the settings, keep its steps apart")
        for node in nodes:
            homes[node] = min(nodes)
    if any(homes[node] != homes[first] for node, first in enumerate(graph.loop)):
        raise InvalidInput("groups", "steps", "steps that stay together are in different ones")
    return homes


def choose_strategy(problem: Problem) -> Strategy:
    """What serves streaming alone is loaded for streaming alone."""
    if not problem.has_streaming:
        return BATCH
    # Inside the function: a parse plans batch dataflows without ever loading what streaming needs.
    from airflow_dagsched.plan.resident.strategy import STREAMING

    return STREAMING


def plan_groups(dataflow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS, *, run: Run = NO_RUN) -> Plan:
    """The groups and spills of the plan of ``dataflow``, and no more of it; takes and raises what ``plan`` does."""
    return select_groups(Draft.empty(Problem.of(dataflow, cluster, settings, run), digest="")).plan


def describe_selection(draft: Draft, selection: Selection) -> Draft:
    """The draft with the groups that were selected, the reason of each, and what they were compared with."""
    best = selection.best
    # The selection's evaluator, for it starts steps in the order that was searched for.
    draft = replace(draft, evaluator=selection.evaluator, bound=selection.bound, chosen=best)
    # A dataflow without steps has no groups, and a bound of its tasks.
    if best is None or not best.members:
        return draft
    graph = draft.problem.graph
    told = _tell_fixed(draft.problem, best) if draft.problem.run.groups is not None else _tell_chosen(selection, best)
    refuse_clash(graph, told.names.values())
    above = _list_above(best, [told.names.get(node, name) for node, name in enumerate(graph.ids)])
    groups = [
        Group(
            id=told.names[first],
            steps=tuple([graph.ids[node] for node in best.members[first]]),
            after=tuple(above[first]),
            reason=told.explain_group(first),
        )
        for first in _sort_by_start(best)
    ]
    spills = find_spills(graph, best.group_of, told.explain_cut)
    plan = replace(draft.plan, groups=tuple(groups), spills=spills, compared=list_compared(selection, best))
    return replace(draft, plan=plan)


class _Told(NamedTuple):
    """What is said of the groups."""

    names: dict[int, str]
    """By their first nodes."""
    explain_group: Callable[[int], str]
    explain_cut: Callable[[int, int], CutReason]


def _tell_chosen(selection: Selection, best: EvaluatedGrouping) -> _Told:
    """What the planner found of groups that it has chosen."""
    graph, rules = selection.problem.graph, selection.problem.rules
    why = Savings.of(selection, best, Reasons.of(graph, rules, _find_forces(selection, best)))
    names = {first: name_group(first, best.members, graph.ids) for first in best.members}
    return _Told(names, lambda first: say_group(why.explain_group(first)), why.explain_cut)


def _tell_fixed(problem: Problem, best: EvaluatedGrouping) -> _Told:
    """What was told of groups when they were fixed; of a cut, what forces it, or that it is there."""
    graph, groups = problem.graph, problem.run.groups or ()
    stages, _ = find_fewest(graph, problem.rules)
    forces = Reasons.of(graph, problem.rules, stages)
    mine = {best.group_of[graph.index[group.steps[0]]]: group for group in groups}
    names = {first: group.id for first, group in mine.items()}
    return _Told(names, lambda first: mine[first].reason, lambda src, dst: forces.find_force(src, dst) or "wired")


def _list_above(best: EvaluatedGrouping, names: list[str]) -> dict[int, list[str]]:
    """For each group and ordinary task the names of those it waits for."""
    above: dict[int, list[str]] = {node: [] for node in best.edges}
    # By number, which is the author's order: ``after`` does not depend on when groups run.
    for node in sorted(best.edges):
        for after in best.edges[node]:
            above[after].append(names[node])
    return above


def _find_forces(selection: Selection, best: EvaluatedGrouping) -> Stages:
    """What forces groups apart; where there is one, nothing does."""
    if len(best.members) == 1:
        return selection.stages
    # The stages of the fewest groups: what is cut beyond these was cut for profit, not by force.
    return selection.find_fewest()[0]


def _sort_by_start(best: EvaluatedGrouping) -> list[int]:
    """The groups as they start: those above come first, since they end before."""
    starts = [(best.spans[first].start_s, best.spans[first].end_s, first) for first in best.members]
    return [first for _, _, first in sorted(starts)]
