"""Small changes to a grouping that has been found, kept where they help.

    {a b} {c}  ──merge──>  {a b c}        {a b} {c}  ──move b──>  {a} {b c}        {a b}  ──part b──>  {a} {b}

    {a} {b} {c} {z}  ──gather──>  {a} {b c z}: z waits for a, b and c; only together do b and c save it a start

First on what decides the makespan: the groups on the chain of who waited for whom, back from the last end. Then
anywhere, now and then to a worse one, less and less far (threshold accepting: Dueck, Scheuer 1990), from a fixed
seed. Groups are neighbours where one waits for the other; where no group does, where one waits for the other's room.
Only small dataflows: each change is simulated whole.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from airflow_dagsched.model.order import reverse_edges
from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping, find_ready_times
from airflow_dagsched.plan.grouping.selection import Selection
from airflow_dagsched.plan.problem.partition import is_acyclic, name_by_least
from airflow_dagsched.plan.problem.problem import Problem

MOST_STEPS = 200
"""Larger dataflows are left as they are."""
FARTHEST = 0.05
"""How much worse, as a share of the best makespan, a step on the way may be at first."""
GATHERED = (2, 3, 5, 8, 13)
"""Neighbours that are moved into a group at once."""
STALE = 300
"""Changes in a row after which nothing new is expected."""
KIND = "the best found, changed a little"
SEED = 0


class Surroundings(Struct, frozen=True):
    """What every change needs to know."""

    problem: Problem
    above: Sequence[Sequence[int]]
    """The edges backwards, with what is never split drawn together."""


def improve_locally(selection: Selection) -> None:
    """Change the best grouping while that helps and the budget lasts."""
    if selection.best is None or len(selection.problem.graph.ids) > MOST_STEPS:
        return
    around = Surroundings(selection.problem, reverse_edges(selection.problem.graph.condensed))
    _search_uphill(selection, around)
    if selection.is_open:
        _search_randomly(selection, around)


def _search_uphill(selection: Selection, around: Surroundings) -> None:
    """From better to better, along the chain that decides."""
    improved = True
    while improved and selection.is_open:
        improved = False
        best = selection.best
        assert best is not None
        for group_of in _list_changes(around, best, list_deciding(best)):
            if not selection.is_open:
                return
            selection.evaluate_grouping(KIND, group_of)
            # From the new best on: the chain that decides may be another one now.
            if selection.best is not best:
                improved = True
                break


def _search_randomly(selection: Selection, around: Surroundings) -> None:
    """Random changes from where we are, as long as they are not too much worse than the best."""
    rng = random.Random(SEED)  # its own generator: nobody else's draws change the plan
    here = selection.best
    assert here is not None
    whole, stale = selection.budget, 0
    while selection.is_open and stale < STALE:
        assert selection.best is not None
        group_of = _draw_change(around, here, rng)
        # Drawing counts, too: where nearly all changes break a rule, the budget must still run out.
        selection.budget -= len(here.group_of)
        stale += 1
        if group_of is None or selection.has_seen(group_of):
            continue
        stale = 0
        found = selection.evaluate_grouping(KIND, group_of)
        # The tolerance shrinks with the budget that is left, to nothing.
        limit = selection.best.cost.makespan_s * (1 + FARTHEST * selection.budget / whole)
        if found is not None and found.cost.makespan_s <= limit:
            here = found


def list_deciding(best: EvaluatedGrouping) -> list[int]:
    """Groups back from the last end: each started when the next ended, because it waited for it, or for its room."""
    above: dict[int, list[int]] = {node: [] for node in best.edges}
    for node, nexts in best.edges.items():
        for after in nexts:
            above[after].append(node)
    by_end: dict[float, list[int]] = {}
    for node, span in best.spans.items():
        by_end.setdefault(span.end_s, []).append(node)
    # At a tie the least node: the chain must not depend on the order of a dict.
    node = max(best.spans, key=lambda node: (best.spans[node].end_s, -node))
    chain = {node: None}
    while best.spans[node].start_s > 0:
        # Equal floats are meant: the time line starts a group at the very end of another.
        ended = [one for one in by_end[best.spans[node].start_s] if one not in chain]
        if not ended:  # but what takes no time, which ends where it starts
            break
        # Rather one that it waits for than one that only had its room.
        node = min([one for one in above[node] if one in ended] or ended)
        chain[node] = None
    return [node for node in chain if node in best.members]


def _list_changes(around: Surroundings, best: EvaluatedGrouping, groups: Sequence[int]) -> Iterator[list[int]]:
    """All valid merges, moves and partings of these groups."""
    problem, neighbours = around.problem, _find_neighbours(best)
    for group in groups:
        units = list_units(problem, best, group)
        for other in neighbours[group]:
            # A merge is a move of all steps.
            yield from move_if_allowed(problem, best.group_of, best.members[group], other)
        for count in GATHERED:
            for backwards in (True, False):
                yield from _gather_neighbours(around, best, group, count, backwards=backwards)
        for steps in units if len(units) > 1 else ():
            for other in (len(best.group_of), *neighbours[group]):  # the number of nodes stands for a new group
                yield from move_if_allowed(problem, best.group_of, steps, other)


def _draw_change(around: Surroundings, here: EvaluatedGrouping, rng: random.Random) -> list[int] | None:
    """One change, every other time on the deciding chain; None if it would break a rule or close a cycle."""
    problem = around.problem
    group = rng.choice(list_deciding(here) if rng.random() < 0.5 else sorted(here.members))
    if rng.random() < 0.3:
        count = rng.randint(1, max(GATHERED))
        return next(_gather_neighbours(around, here, group, count, backwards=rng.random() < 0.5), None)
    to = rng.choice([*_find_neighbours(here)[group], len(here.group_of)])
    steps = here.members[group]
    if rng.random() < 0.7:
        steps = rng.choice(list_units(problem, here, group))
        if rng.random() < 0.5:
            steps = add_followers(around, here.group_of, steps, backwards=rng.random() < 0.3)
    return next(move_if_allowed(problem, here.group_of, steps, to), None)


def add_followers(around: Surroundings, group_of: Sequence[int], steps: Sequence[int], *, backwards: bool) -> list[int]:
    """The steps with all behind them (before them) in their group: what can leave it without a cycle."""
    graph = around.problem.graph
    edges = around.above if backwards else graph.condensed
    found = [graph.loop[steps[0]]]
    for unit in found:
        found += [other for other in edges[unit] if group_of[other] == group_of[unit] and other not in found]
    units = set(found)
    return [node for node, of in enumerate(graph.loop) if of in units]


def _gather_neighbours(
    around: Surroundings, here: EvaluatedGrouping, group: int, count: int, *, backwards: bool
) -> Iterator[list[int]]:
    """``count`` units right before the group (behind it), those that end last (start first), moved into it."""
    problem = around.problem
    graph, group_of, spans = problem.graph, here.group_of, here.spans
    edges = around.above if backwards else graph.condensed
    found = {other for node in here.members[group] for other in edges[graph.loop[node]] if graph.is_step(other)}
    near = sorted(other for other in found if group_of[other] != group)
    near.sort(key=lambda other: -spans[group_of[other]].end_s if backwards else spans[group_of[other]].start_s)
    units = set(near[:count])
    if len(units) == count:
        yield from move_if_allowed(
            problem, group_of, [node for node, of in enumerate(graph.loop) if of in units], group
        )


def _find_neighbours(best: EvaluatedGrouping) -> dict[int, list[int]]:
    """Groups before and behind each group; where no group waits for another's end, those that wait for its room."""
    found: dict[int, set[int]] = {node: set() for node in best.members}
    _pair_units(found, ((node, after) for node, nexts in best.edges.items() for after in nexts))
    if not any(found.values()):
        _pair_units(found, _find_room_makers(best))
    return {node: sorted(others) for node, others in found.items()}


def _pair_units(found: dict[int, set[int]], pairs: Iterable[tuple[int, int]]) -> None:
    for node, other in pairs:
        if node in found and other in found:
            found[node].add(other)
            found[other].add(node)


def _find_room_makers(best: EvaluatedGrouping) -> Iterator[tuple[int, int]]:
    """Pairs of a group and one that started when it ended, though that had been ready before."""
    ready = find_ready_times(best)
    ended: dict[float, list[int]] = {}
    for node in best.members:
        ended.setdefault(best.spans[node].end_s, []).append(node)
    for node in best.members:
        start = best.spans[node].start_s
        if start > ready[node]:
            yield from ((other, node) for other in ended.get(start, ()))


def list_units(problem: Problem, best: EvaluatedGrouping, group: int) -> list[list[int]]:
    """The steps of a group, those that are never split together."""
    units: dict[int, list[int]] = {}
    for node in best.members[group]:
        units.setdefault(problem.graph.loop[node], []).append(node)
    return [units[first] for first in sorted(units)]


def move_if_allowed(problem: Problem, group_of: Sequence[int], steps: Sequence[int], to: int) -> Iterator[list[int]]:
    """The homes with ``steps`` moved to group ``to`` (the number of nodes: a new one), if that may be."""
    moved = move_steps(group_of, steps, to)
    if may_hold(problem, moved, steps[0]):
        yield moved


def move_steps(group_of: Sequence[int], steps: Sequence[int], to: int) -> list[int]:
    """The homes with ``steps`` moved to group ``to`` (the number of nodes: a new one)."""
    moved = list(group_of)
    for node in steps:
        moved[node] = to
    return name_by_least(moved)


def may_hold(problem: Problem, group_of: Sequence[int], step: int) -> bool:
    """Whether the group of ``step`` may be one, and no groups wait for each other."""
    members = [node for node, of in enumerate(group_of) if of == group_of[step]]
    # Cycles last: that walks over all edges, the rules look at one group.
    return problem.rules.may_share(members, problem.graph.loop) and is_acyclic(problem.graph, group_of)
