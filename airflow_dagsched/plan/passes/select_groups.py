"""The pass that selects the groups: which steps run as one application, and which channels are cut between them.

    a ══> b ══> c            {a b}, {c}: one of many groupings, each evaluated by simulating it,
    (t, 3 h) ──> c           because c would keep a and b waiting for t

Words. A *grouping* says for each step the first step of its group. A *strategy* says which groupings are looked at:
where steps stream they hold what they need from start to end, so more is looked at, in a room of its own
(``resident``) that nothing loads for a batch plan.

Guarantee. Cutting nothing but what must be cut, as few groups as can be, and one application per step are always among
what is compared: the plan ends no later than any of these is predicted to.
"""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping, name_group
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.lower_bound import bound_makespan
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.grouping.candidates import BATCH, Strategy, search_groupings
from airflow_dagsched.plan.grouping.coarsest import Grouped, Grouping, refuse_clash
from airflow_dagsched.plan.grouping.reasons import Reasons
from airflow_dagsched.plan.grouping.savings import Savings, list_compared
from airflow_dagsched.plan.grouping.selection import Selection
from airflow_dagsched.plan.grouping.spills import find_spills
from airflow_dagsched.plan.grouping.stages import Stages
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.report.group_sentences import say_group
from airflow_dagsched.plan.settings import DEFAULTS, Settings


def select_groups(draft: Draft) -> Draft:
    """The draft with its groups and spills, the best of those compared; raises ``DoesNotFit``."""
    return describe_selection(draft, search_problem(draft.problem))


def search_problem(problem: Problem) -> Selection:
    """The best grouping of a problem, by the strategy that suits it; raises ``DoesNotFit``."""
    strategy = choose_strategy(problem)
    bound = bound_makespan(problem, strategy.list_kept_apart(problem))
    return search_groupings(Evaluator(problem), bound, strategy)


def choose_strategy(problem: Problem) -> Strategy:
    """What serves streaming alone is loaded for streaming alone."""
    if not problem.has_streaming:
        return BATCH
    # Inside the function: a parse plans batch dataflows without ever loading what streaming needs.
    from airflow_dagsched.plan.resident.strategy import STREAMING

    return STREAMING


def find_fitted_groups(dataflow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS) -> Grouping:
    """The groups that the plan of ``dataflow`` on ``cluster`` has: what a parse takes where a cluster is declared.

    Raises as ``plan`` does.
    """
    plan = select_groups(Draft.empty(Problem.of(dataflow, cluster, settings), digest="")).plan
    groups = (Grouped(id=one.id, steps=one.steps, after=one.after, reason=one.reason) for one in plan.groups)
    return Grouping(tuple(groups), plan.spills)


def describe_selection(draft: Draft, selection: Selection) -> Draft:
    """The draft with the groups that were selected, the reason of each, and what they were compared with."""
    best = selection.best
    # The selection's evaluator, for it starts steps in the order that was searched for.
    draft = replace(draft, evaluator=selection.evaluator, bound=selection.bound, chosen=best)
    # A dataflow without steps has no groups, and a bound of its tasks.
    if best is None or not best.members:
        return draft
    graph = draft.problem.graph
    names = {first: name_group(first, best.members, graph.ids) for first in best.members}
    refuse_clash(graph, names.values())
    why = Savings.of(selection, best, Reasons.of(graph, draft.problem.rules, _find_forces(selection, best)))
    above = _list_above(best, [names.get(node, name) for node, name in enumerate(graph.ids)])
    groups = [
        Group(
            id=names[first],
            steps=tuple([graph.ids[node] for node in best.members[first]]),
            after=tuple(above[first]),
            reason=say_group(why.explain_group(first)),
        )
        for first in _sort_by_start(best)
    ]
    spills = find_spills(graph, best.group_of, why.explain_cut)
    plan = replace(draft.plan, groups=tuple(groups), spills=spills, compared=list_compared(selection, best))
    return replace(draft, plan=plan)


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
