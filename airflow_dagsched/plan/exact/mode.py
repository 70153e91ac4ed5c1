"""The exact mode, for small dataflows: all there is tried, or a solver's bound and what it finds.

    up to 8 steps     all groupings, lists inside groups and orders of launches (see ``tried``)
    more              the heuristic's plan ── changes ──> solver: bound, grouping or order ── changes ──> plan
                      (resident steps: with a bound by phases first, see ``phases``)

The solver's model is a relaxation of the planner's (see ``model``), so its bound holds for every plan; what it
finds is priced by the one cost model, kept where it is better, and changed a little at a time as long as that helps.
The better the plan it starts from, the less is left for it to look at.
All budgets are counted: equal facts, equal plans. The solver needs the extra ``[exact]``. The command line's alone:
never at a parse.
"""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.collector import uncollected
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.exact.model import solved
from airflow_dagsched.plan.exact.phases import phased
from airflow_dagsched.plan.exact.tried import Solved, solve
from airflow_dagsched.plan.given import Given, Pass
from airflow_dagsched.plan.planner import as_placed, completed, given_of
from airflow_dagsched.plan.prune.asked import NOTHING_ASKED, Asked
from airflow_dagsched.plan.search.choice import Choice
from airflow_dagsched.plan.search.choose import choose
from airflow_dagsched.plan.search.moves import improve
from airflow_dagsched.plan.search.relist import relist
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.values import Plan
from airflow_dagsched.plan.words import count

BUDGET = 1.5
"""Deterministic seconds of the solver: about as many of one core."""
POLISH = 300_000
"""Steps and edges that may be simulated in changes to what was found: about a second."""
KIND = "found by the exact mode"
PROOF = "the exact mode has proved it"


@uncollected
def exact_plan(
    dataflow: Dataflow,
    cluster: Cluster,
    settings: Settings = DEFAULTS,
    *,
    asked: Asked = NOTHING_ASKED,
    moved: Pass = as_placed,
) -> Plan:
    """The plan with what a solver proves, and finds, within its budget; for small dataflows.

    Raises ``InvalidInput`` also where the extra ``[exact]`` is not installed.
    """
    choice = choose_exactly(given_of(dataflow, cluster, settings))
    choice.given = replace(choice.given, asked=asked)
    return completed(dataflow, choice, moved)


def choose_exactly(given: Given, budget: float = BUDGET) -> Choice:
    """The best grouping found, among what it was compared with; its given has the bound, and the order of the lists.

    Raises ``InvalidInput`` where a solver is needed without the extra ``[exact]``, ``DoesNotFit`` as ``choose`` does.
    """
    choice = choose(given)
    if choice.best is None or choice.proved:
        return choice
    phases = phased(choice.given)
    if phases.seconds > choice.given.bound:
        choice.given = replace(choice.given, bound=phases.seconds, bound_reason=phases.why)
    tiny = solve(choice.given, choice.best)
    if tiny is not None:
        choice.given = tiny.given
        if tiny.priced is not choice.best:
            choice.take(KIND, tiny.priced)
        if tiny.proved and not given.settings.failures_per_hour:
            choice.given = _proved(tiny)
            return choice
    _polish(choice)
    choice = _by_solver(choice, budget)
    if choice.chosen == KIND:
        _polish(choice)
    return choice


def _polish(choice: Choice) -> None:
    """Small changes to the best, as long as none can be proved to be in vain."""
    choice.budget = POLISH
    if choice.open:
        improve(choice)
        choice.decide()
        relist(choice, POLISH)


def _proved(tiny: Solved) -> Given:
    """The given, bounded by the optimum."""
    why = f"all {count(tiny.tried, 'grouping')} there are have been tried, in all orders"
    return replace(tiny.given, bound=tiny.priced.cost.makespan_s, bound_reason=why)


def _by_solver(choice: Choice, budget: float) -> Choice:
    """The choice with the solver's bound, and what it found where that is better."""
    found = solved(choice.given, choice, budget)
    if found is None:
        return choice
    if found.bound_s > choice.given.bound:
        choice.given = replace(choice.given, bound=found.bound_s, bound_reason=PROOF)
    if found.order is not None:
        return _reordered(choice, found.order)
    if found.home is not None:
        choice.offer(KIND, found.home)
        choice.decide()
    return choice


def _reordered(choice: Choice, order: tuple[int, ...]) -> Choice:
    """The choice anew with the solver's order inside groups, where that is better."""
    given = choice.given
    other = choose(replace(given, work=replace(given.work, order=order, shapes={}, chosen={})))
    assert choice.best is not None
    assert other.best is not None
    if other.best.cost >= choice.best.cost:
        return choice
    other.compared = {**other.compared, **choice.compared, KIND: other.best.cost}
    other.chosen = KIND
    return other
