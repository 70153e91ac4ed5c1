"""Groupings that end soon whatever the runtimes turn out to be.

    told   a b c d   nobody knows how long: each is taken to run as long as the others, so full groups seem best
    true   a 900 s   who shares its group holds cores for 900 s, and so long waits what comes behind the group

Runtimes are drawn that may be the true ones, several for each step. For each draw a small search looks for groupings
that end soon with it. These, and what was found with the runtimes as told, are then evaluated with every draw: how much
later a grouping ends, on average, than the soonest of all is its *regret*. Of those with about the least regret the one
with the fewest groups is taken. Where some runtime is told, only what ends within the tolerance of the soonest is asked
for its regret; where none is, any. What is told of the plan, seconds and reasons, is told with the runtimes as told.

Robust scheduling by scenarios, with relative regret (Kouvelis, Yu 1997), on average in place of at worst. Every draw is
from a seed of its step, and all effort is counted: equal facts, equal plans.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import fmean, median

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.costing.evaluated_grouping import Cost
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.launch_order import search_launch_order
from airflow_dagsched.plan.costing.lower_bound import LowerBound
from airflow_dagsched.plan.grouping.candidates import Propose
from airflow_dagsched.plan.grouping.fewest_applications import take_fewest
from airflow_dagsched.plan.grouping.front import WITHIN
from airflow_dagsched.plan.grouping.local_search import improve_locally
from airflow_dagsched.plan.grouping.selection import Selection
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.step_arrays import StepArrays

DRAWS = 10
"""Runtimes that are drawn for each step."""
SCALES = (30.0, 300.0)
"""Where no runtime is told: so many times what is assumed, draw by draw. A second is what a step takes that does next
to nothing; those that somebody runs on Spark take minutes, or parts of one."""
UNTOLD, TOLD = 1.2, 0.3
"""Deviation of the logarithm of a runtime that nobody has told, and of one that somebody has."""
BUDGET = 7_000
"""Steps and edges that may be simulated with each draw to find groupings."""
RACED = 60_000
"""Steps and edges that may be simulated with the first draws, one of each scale, to find those worth all draws."""
KEPT = 40
"""Groupings that are evaluated with all draws, besides the best of each kind."""
MOST = 200
"""Steps; of more, each evaluation takes too long to be repeated for every draw."""
KIND = "least regret over plausible runtimes"

Key = tuple[int, ...]
"""A grouping: for each node the first node of its group."""


def take_plausible(selection: Selection, propose: Propose) -> None:
    """Make the best grouping that of the fewest groups among those with about the least regret.

    ``propose``: groupings that are looked at with each draw.
    """
    # Before regrets, too: what ends in time with fewer groups may have little of it.
    if is_any_told(selection.problem) or not _may_regret(selection):
        take_fewest(selection)
    if not _may_regret(selection):
        return
    draws = [Evaluator(one, selection.evaluator.start_order) for one in draw_problems(selection.problem)]
    kinds = list(selection.groupings.values())
    costs = _limit_ends(selection, [*kinds, *_list_found(selection, draws, propose)])
    regrets = measure_regrets([*filter(costs.__contains__, kinds), *_race(costs, draws)], draws)
    _take(selection, _choose_as_told(regrets, costs, kinds), regrets)


def _may_regret(selection: Selection) -> bool:
    """One group ends with its longest step, whichever that is; and what is told and proved is taken at its word."""
    best, problem = selection.best, selection.problem
    if best is None or len(best.members) <= 1 or len(problem.graph.steps) > MOST:
        return False
    return not (selection.is_proved and is_any_told(problem))


def _limit_ends(selection: Selection, found: Iterable[Key]) -> dict[Key, Cost]:
    """Those that end in time with the runtimes as told, as far as any is; what they cost with these."""
    assert selection.best is not None
    best, costs = tuple(selection.best.group_of), {}
    limit_s = selection.front.limit_makespan() if is_any_told(selection.problem) else math.inf
    for key in dict.fromkeys([best, *found]):
        with suppress(DoesNotFit):
            cost = selection.evaluator.evaluate_grouping(key).cost
            # The best is in time in any case: in the order of launches that was found for it.
            if key == best or cost.makespan_s <= limit_s:
                costs[key] = cost
    return costs


def _take(selection: Selection, chosen: Key, regrets: Mapping[Key, float]) -> None:
    """Make a grouping the best, and tell the regret of each kind."""
    assert selection.best is not None
    if chosen != tuple(selection.best.group_of):
        whole = selection.evaluator.evaluate_grouping(chosen)
        named = (kind for kind, key in selection.groupings.items() if key == chosen)
        selection.best, selection.best_kind = search_launch_order(whole, selection.evaluator), next(named, KIND)
    selection.regrets = {kind: regrets[key] for kind, key in selection.groupings.items() if key in regrets}
    selection.regrets[selection.best_kind] = regrets[chosen]


def is_any_told(problem: Problem) -> bool:
    """Whether the runtime of any step is declared, or was measured."""
    return any(step.runtime_s for step in problem.graph.steps)


def draw_problems(problem: Problem) -> Iterator[Problem]:
    """The same with runtimes of steps that may be the true ones."""
    graph, settings = problem.declared, problem.settings
    told = [step.runtime_s for step in graph.steps if step.runtime_s]
    # A generator for each step: one step more changes nothing that is drawn for those before it.
    generators = [random.Random(node) for node in range(len(graph.steps))]
    for at in range(DRAWS):
        usual_s = median(told) if told else settings.step_runtime_s * SCALES[at % len(SCALES)]
        steps = [_draw_runtime(step, usual_s, rng) for step, rng in zip(graph.steps, generators, strict=True)]
        drawn = replace(graph, steps=steps)
        yield replace(problem, arrays=StepArrays.of(drawn, problem.cluster, settings, problem.exclusions.idle_steps))


def _draw_runtime(step: Step, usual_s: float, rng: random.Random) -> Step:
    if step.runtime_s:
        return replace(step, runtime_s=step.runtime_s * rng.lognormvariate(0, TOLD))
    return replace(step, runtime_s=usual_s * rng.lognormvariate(0, UNTOLD))


def _list_found(selection: Selection, draws: Sequence[Evaluator], propose: Propose) -> list[Key]:
    """What ends soon with some draw, then what has been looked at with the runtimes as told."""
    found = [key for draw in draws for key in _search(selection, draw, propose)]
    # Sorted, for a set has no order; evenly, for those that were found one behind the other are alike.
    seen = sorted(selection.seen)
    each = len(SCALES) * (len(selection.problem.graph.ids) + len(selection.problem.graph.datasets))
    return [*found, *seen[:: 1 + len(seen) * each // RACED]]


def _search(selection: Selection, draw: Evaluator, propose: Propose) -> Iterator[Key]:
    """Groupings that end soon with one draw."""
    other = Selection(draw, LowerBound(), BUDGET, selection.stages, few=selection.few)
    for group_of in sorted(selection.anchors):
        other.evaluate_grouping(KIND, group_of)
    other.evaluate_all(propose(other))
    if other.is_open:
        improve_locally(other)
    yield from other.groupings.values()
    yield from (tuple(one.evaluated.group_of) for one in other.front.by_count.values())


def _race(found: Iterable[Key], draws: Sequence[Evaluator]) -> list[Key]:
    """Those with the least regret over the first draws."""
    regrets = measure_regrets(found, draws[: len(SCALES)])
    return sorted(regrets, key=lambda key: (regrets[key], key))[:KEPT]


def measure_regrets(groupings: Iterable[Key], draws: Sequence[Evaluator]) -> dict[Key, float]:
    """By how much later each ends than the soonest of them, as a share, on average; without those that do not fit."""
    seconds = {}
    for key in dict.fromkeys(groupings):
        with suppress(DoesNotFit):
            seconds[key] = [draw.evaluate_grouping(key).cost.makespan_s for draw in draws]
    least = [min(column) for column in zip(*seconds.values(), strict=True)]
    return {key: round(fmean(map(_exceed, row, least)), DIGITS) for key, row in seconds.items()}


def _exceed(seconds: float, least: float) -> float:
    return seconds / least - 1 if least else 0.0


def _choose_as_told(regrets: Mapping[Key, float], costs: Mapping[Key, Cost], kinds: Iterable[Key]) -> Key:
    """As ``choose_fewest``, by what a plan tells: the regrets of the ``kinds``, and of what is chosen."""
    told = {key: regrets[key] for key in kinds if key in regrets}
    chosen = choose_fewest(regrets, costs)
    # Something that has no name may have less regret than both: nobody who reads the plan would see why not the other.
    return chosen if choose_fewest({**told, chosen: regrets[chosen]}, costs) == chosen else choose_fewest(told, costs)


def choose_fewest(regrets: Mapping[Key, float], costs: Mapping[Key, Cost]) -> Key:
    """Of those with about the least regret that with the fewest groups."""
    most = (1 + min(regrets.values())) * (1 + WITHIN) - 1
    about = [key for key, regret in regrets.items() if regret <= most]
    return min(about, key=lambda key: (costs[key].groups, regrets[key], costs[key], key))
