"""Of the groupings that end about as soon as the best the one with the fewest groups; and fewer yet where that goes.

    soonest   {load} {a} {b} {c} {d} {join}   100.0 s
    taken     {load} {a c} {b d} {join}       100.6 s: within 1%, two applications fewer

What an application costs besides its seconds (see ``front.WITHIN``) is no part of the makespan, so it is a tolerance:
always of the soonest grouping of all, so that it is used up once. First what has been evaluated; then pairs of groups
are merged as long as the plan still ends in time; then one group fewer is tried by random moves of steps, from a fixed
seed. The effort is counted: equal facts, equal groups.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import combinations

from msgspec import Struct, field

from airflow_dagsched.model.order import reverse_edges
from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping
from airflow_dagsched.plan.costing.launch_order import bound_launches, search_launch_order
from airflow_dagsched.plan.costing.timeline import measure_job_tails
from airflow_dagsched.plan.grouping.front import Found
from airflow_dagsched.plan.grouping.local_search import (
    MOST_STEPS,
    Surroundings,
    add_followers,
    list_units,
    may_hold,
    move_if_allowed,
    move_steps,
)
from airflow_dagsched.plan.grouping.reorder_steps import reorder_steps
from airflow_dagsched.plan.grouping.selection import MANY, Selection
from airflow_dagsched.plan.problem.problem import Problem

BUDGET = 60_000
"""Steps and edges that may be simulated while groups are merged."""
MERGED = 100
"""Of more groups the shortest are merged in pairs."""
HOTTEST, COLDEST = 0.5, 0.001
"""Groups by which a grouping on the way may be worse, about, at first and at last."""
LATE = 0.02
"""So much too late, as a share, is as bad as one group more."""
KIND = "fewer applications"
SEVERAL = 8
"""Of so many groups one more pair is merged at once."""
LOOKED = 16
"""Looks at a waiting group that take as long as simulating a step."""
TRIED = 15
"""Merges that must be affordable, else none is tried."""
DRAWN = 8
"""Random changes that are drawn in the time that it takes to simulate one grouping."""
STALE = 300
"""Draws in a row after which nothing new is expected."""
TWO = 2
SEED = 0


def take_fewest(selection: Selection) -> None:
    """Make the best grouping that of the fewest groups within the tolerance, and its evaluator the selection's."""
    if selection.best is None or not selection.best.members:
        return
    _search_launches(selection)
    selection.budget = BUDGET
    # Of large dataflows nothing is merged: what could be paid for would be a few pairs of many.
    if len(selection.problem.graph.ids) + len(selection.problem.graph.datasets) <= BUDGET // TRIED:
        _Shrinking.of(selection).run()
    _take_found(selection, selection.front.find_fewest())


def count_least_groups(problem: Problem) -> int:
    """No grouping has fewer groups: one a color, and along a path one more at each task or color in between."""
    graph, color = problem.graph, problem.rules.color
    count = [0] * len(graph.ids)
    for node in graph.order:
        is_step = graph.is_step(node)
        count[node] = max(count[node], int(is_step))
        for after in graph.successors[node]:
            # A task takes no group, but no step behind it can be in a group of one before it.
            rises = graph.is_step(after) and color[after] != color[node] and count[node] > 0
            count[after] = max(count[after], count[node] + rises)
    return max([len(set(color[: len(graph.steps)])), *count])


def _take_found(selection: Selection, found: Found) -> None:
    soonest = selection.best
    kind, selection.best, selection.evaluator = found
    # A kind is told with its best grouping: where that is another one, this needs a name of its own.
    selection.best_kind = kind if selection.costs[kind] == selection.best.cost else KIND
    if selection.best is not soonest:
        reorder_steps(selection)


def _search_launches(selection: Selection) -> None:
    """Of groupings with fewer groups that might end in time if they were launched in another order, search that."""
    if len(selection.problem.graph.steps) > MANY:
        return
    limit_s = selection.front.limit_makespan()
    for kind, evaluated, evaluator in selection.front.list_fewer():
        if bound_launches(evaluated, selection.problem) <= limit_s:
            selection.front.keep_if_unbeaten(Found(kind, search_launch_order(evaluated, evaluator), evaluator))


class _Shrinking(Struct):
    """Groups merged for as long as the plan ends in time."""

    selection: Selection
    around: Surroundings
    least: int
    """Groups that there must be."""
    known: dict[tuple[int, ...], EvaluatedGrouping | None] = field(default_factory=dict)
    """Where random changes have led; None where a grouping breaks a rule, or does not fit."""

    @property
    def limit_s(self) -> float:
        """The latest end that will do; a sooner grouping may turn up on the way."""
        return self.selection.front.limit_makespan()

    @classmethod
    def of(cls, selection: Selection) -> _Shrinking:
        problem = selection.problem
        around = Surroundings(problem, reverse_edges(problem.graph.condensed))
        return cls(selection, around, count_least_groups(problem))

    def run(self) -> None:
        """Until no budget or no group that could go is left."""
        self.merge_pairs()
        rng, budget = random.Random(SEED), self.selection.budget
        self.anneal(self.find_fewest(), rng, budget // 2)
        # Once more from a grouping that ends too late: the best are sometimes far from each other.
        nearest = min(self.selection.front.list_fewer(), key=lambda found: self.weigh(found.evaluated), default=None)
        if nearest is not None:
            self.anneal(nearest.evaluated, rng, 0)
        self.merge_pairs()

    def may_go_on(self, enough: int = 1) -> bool:
        """Whether there is budget left, and a group that could go; no fewer than ``enough`` are looked for."""
        return self.selection.budget > 0 and self.find_fewest().cost.groups > max(enough, self.least)

    def find_fewest(self) -> EvaluatedGrouping:
        """Of those that end in time the one with the fewest groups, its evaluator as the selection's."""
        found = self.selection.front.find_fewest()
        self.selection.evaluator = found.evaluator
        return found.evaluated

    def merge_pairs(self) -> None:
        """From fewer to fewer groups, as long as two can be one in time; of many groups several pairs at once."""
        count = 1
        while self.may_go_on():
            here = self.find_fewest()
            if self.merge_at_once(here, min(count, len(here.members) // SEVERAL)):
                count *= 2
            elif self.merge_pair(here):
                count = max(1, count // 2)
            else:
                return

    def merge_pair(self, here: EvaluatedGrouping) -> bool:
        """Whether a merge of two groups ends in time."""
        for pair in self.list_pairs(here):
            group_of = self.merge(here.group_of, pair)
            merged = self.evaluate(group_of) if group_of else None
            if merged is not None and merged.cost.makespan_s <= self.limit_s:
                return True
            if self.selection.budget <= 0:
                break
        return False

    def merge_at_once(self, here: EvaluatedGrouping, count: int) -> bool:
        """Whether so many merges together end in time; none of fewer than two."""
        group_of, done = list(here.group_of), set[int]()
        for pair in self.list_pairs(here) if count > 1 else ():
            if len(done) < 2 * count and done.isdisjoint(pair):
                wider = self.merge(group_of, pair)
                if wider:
                    group_of = wider
                    done.update(pair)
        merged = self.evaluate(group_of) if done else None
        return merged is not None and merged.cost.makespan_s <= self.limit_s

    def merge(self, group_of: Sequence[int], pair: tuple[int, int]) -> list[int] | None:
        """With two groups as one; None where that may not be."""
        one, other = pair
        steps = [node for node, of in enumerate(group_of) if of == other]
        return next(move_if_allowed(self.around.problem, group_of, steps, one), None)

    def list_pairs(self, here: EvaluatedGrouping) -> list[tuple[int, int]]:
        """Groups that may be one, those first of which one is short: that costs the other least."""
        seconds, color = {first: here.jobs[first].seconds for first in here.members}, self.around.problem.rules.color
        # Of thousands of groups there would be millions of pairs.
        shortest = sorted(here.members, key=lambda first: (seconds[first], first))[:MERGED]
        pairs = [(one, other) for one, other in combinations(shortest, 2) if color[one] == color[other]]
        hopeful = _drop_late(here, pairs, self.limit_s)
        return sorted(hopeful, key=lambda pair: [seconds[first] for first in pair])

    def anneal(self, here: EvaluatedGrouping, rng: random.Random, reserve: int) -> None:
        """Random changes, also to a worse grouping, ever less so (simulated annealing: Kirkpatrick et al. 1983).

        ``reserve``: the budget that is to be left.
        """
        selection, whole, stale = self.selection, max(1, self.selection.budget - reserve), 0
        if len(here.group_of) > MOST_STEPS:
            return
        # Of two groups the only merge there is has been tried.
        while self.may_go_on(TWO) and stale < STALE:
            # Drawing counts, too: where nearly all changes break a rule, the budget must still run out.
            selection.budget -= len(here.group_of) // DRAWN + 1
            if selection.budget <= reserve:
                return
            group_of, step = self.draw_change(here, rng)
            stale = stale + 1 if group_of in self.known or selection.has_seen(group_of) else 0
            found = self.look_up(group_of, step)
            heat = HOTTEST * max(0, selection.budget - reserve) / whole + COLDEST
            if found is not None and rng.random() < math.exp(min(0.0, self.weigh(here) - self.weigh(found)) / heat):
                here = found

    def weigh(self, evaluated: EvaluatedGrouping) -> float:
        """Groups, and as many as one for each ``LATE`` that it ends too late."""
        return evaluated.cost.groups + max(0.0, evaluated.cost.makespan_s / self.limit_s - 1) / LATE

    def draw_change(self, here: EvaluatedGrouping, rng: random.Random) -> tuple[tuple[int, ...], int]:
        """A step, with what hangs on it or alone, or a whole group, in another group, which may break a rule; the
        changed grouping, and such a step.
        """
        groups = sorted(here.members)
        group, to = rng.choice(groups), rng.choice([*groups, len(here.group_of)])
        steps: Sequence[int] = here.members[group]
        if rng.random() < 0.6:
            steps = rng.choice(list_units(self.around.problem, here, group))
            if rng.random() < 0.5:
                steps = add_followers(self.around, here.group_of, steps, backwards=rng.random() < 0.5)
        return tuple(move_steps(here.group_of, steps, to)), steps[0]

    def look_up(self, group_of: tuple[int, ...], step: int) -> EvaluatedGrouping | None:
        """None where a rule forbids the group of ``step``, or where that does not fit. Also what has been seen: a walk
        that may not go back is soon shut in.
        """
        if group_of not in self.known:
            allowed = may_hold(self.around.problem, group_of, step)
            price = self.selection.price_grouping if self.selection.has_seen(group_of) else self.evaluate
            self.known[group_of] = price(group_of) if allowed else None
        return self.known[group_of]

    def evaluate(self, group_of: Sequence[int]) -> EvaluatedGrouping | None:
        """None where that does not fit, or has been seen."""
        # Groups that wait for room are looked at again whenever one ends.
        self.selection.budget -= len(set(group_of)) ** 2 // LOOKED
        return self.selection.evaluate_grouping(KIND, group_of)


def _drop_late(here: EvaluatedGrouping, pairs: Sequence[tuple[int, int]], limit_s: float) -> list[tuple[int, int]]:
    """Those that might end in time as one group: it begins when all that either waits for has ended, takes as long as
    the longer one, and all that waits for either follows.
    """
    above: dict[int, list[int]] = {node: [] for node in here.edges}
    for node, nexts in here.edges.items():
        for after in nexts:
            above[after].append(node)
    seconds = {node: job.seconds for node, job in here.jobs.items()}
    # Both with the group's own seconds.
    to_end, from_start = measure_job_tails(here.jobs, here.edges), measure_job_tails(here.jobs, above)

    def may_end(pair: tuple[int, int]) -> bool:
        first, second = pair
        # Neighbours wait for each other no more, and hand over in memory.
        if second in here.edges[first] or first in here.edges[second]:
            return True
        head = max([from_start[one] - seconds[one] for one in pair])
        tail = max([to_end[one] - seconds[one] for one in pair])
        return head + max(seconds[first], seconds[second]) + tail <= limit_s

    return [pair for pair in pairs if may_end(pair)]
