"""The list in whose order the steps of a batch group start, changed where the plan then ends sooner.

    4 cores, a: 5 x 30 s, b: 60 s

    longest remaining path first   |a a a a|a b . .|. b . .|   90 s: b finds no core beside a's first wave
    b first                        |b a a a|b a a .|           60 s

Longest remaining path first is a rule of thumb: where wide steps come in waves, other lists are often better. Steps
are put elsewhere in the lists of the groups that decide the makespan, one at a time, from a fixed seed, and stay there
where the group computes no longer. Then, as far as the lower bound leaves something to gain, lists are made of
schedules that are searched for (``inside_groups``). The effort is counted: equal facts, equal lists.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.order import sort_topologically
from airflow_dagsched.plan.costing.demand import make_demand
from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping, GroupOf
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.executor_shape import ExecutorShape, pool_containers
from airflow_dagsched.plan.costing.list_schedule import CorePool, measure_longest_path, schedule_in_slots
from airflow_dagsched.plan.grouping.inside_groups import search_list
from airflow_dagsched.plan.grouping.local_search import list_deciding
from airflow_dagsched.plan.grouping.selection import CLOSE, Selection
from airflow_dagsched.plan.problem.problem import Problem

EFFORT = 1_500
"""Steps and instances that schedules of other lists may go over, all together: about a millisecond."""
STARTS = 3
"""A step costs so many times what one of its instances does."""
PLACED = 4_000
"""Steps that the search for projects may place, all together: some milliseconds."""
WORTH_ALL = 0.04
"""What a plan might gain, as a share of its time, that is worth all of these; of less that share."""
MOST = 1_000
"""Steps of a group; three schedules, the least there are, take some 40 ms for as many,"""
ALL = 10_000
"""and some tenths of a second for so many in all groups: of more none is searched for."""
SEED = 0

Search = Callable[[EvaluatedGrouping, Sequence[int]], dict[int, list[int]]]
"""Of these groups of a grouping, by their first nodes, other lists."""


def reorder_steps(selection: Selection, effort: int = EFFORT, placed: int = PLACED) -> None:
    """Change the lists of the best grouping, and with them the order that whoever comes later is given."""
    # What small moves find is kept before more is tried: shorter groups may make a longer plan.
    _try_lists(selection, lambda best, groups: _move_steps(best, groups, selection.problem, effort))
    _try_lists(selection, lambda best, groups: _search_projects(best, groups, selection, placed))


def _try_lists(selection: Selection, search: Search) -> None:
    """The best grouping with the lists that ``search`` finds for the groups that decide, if that is better."""
    best = selection.best
    # A proved plan cannot be mended by another order.
    if best is None or selection.is_proved:
        return
    # Resident steps all start at once, and the order inside a loop is the loop's own.
    loop = selection.problem.graph.loop
    groups = [
        first
        for first in list_deciding(best)
        if first in best.shapes
        and best.shapes[first].residency != "all"
        and len(best.members[first]) > 1
        and all(loop[node] == node for node in best.members[first])
    ]
    lists = {first: list(steps) for first, steps in best.members.items()} | search(best, groups)
    if lists != best.members:
        _keep_if_better(selection, best, _merge_lists(lists, best.group_of, selection.evaluator))


def _keep_if_better(selection: Selection, best: EvaluatedGrouping, order: Sequence[int]) -> None:
    """The best grouping with its steps in this order, if that is better."""
    evaluator = selection.evaluator.reorder_starts(order)
    try:
        evaluated = evaluator.evaluate_grouping(best.group_of)
    except DoesNotFit:  # at other times there may be less room for spills
        return
    if evaluated.cost < best.cost:
        selection.evaluator = evaluator
        selection.keep_if_better(selection.best_kind, evaluated)


def _move_steps(best: EvaluatedGrouping, groups: Sequence[int], problem: Problem, effort: int) -> dict[int, list[int]]:
    """Lists with some steps elsewhere, one at a time."""
    lists = {}
    for first in groups:
        steps = best.members[first]
        # What one schedule of this group costs: so the effort is the same for few wide steps and for many narrow
        # ones.
        each = sum([STARTS + problem.graph.steps[node].parallelism for node in steps])
        if effort >= each:
            lists[first] = _move_within(list(steps), best.shapes[first], problem, effort // each)
            effort %= each
    return lists


def _move_within(steps: list[int], shape: ExecutorShape, problem: Problem, tries: int) -> list[int]:
    """The best list found for a group that is sized as ``shape``."""
    pool = _pool_cores(steps, shape, problem)
    least, floor = shape.schedule.compute_s, _bound_lists(steps, pool, problem)
    found, rng = steps, random.Random(SEED)
    for _ in range(tries):
        if least <= floor:
            break
        other = _move_step(found, problem, rng)
        seconds = schedule_in_slots(other, problem, shape.slots, pool).compute_s
        # Also where it is no better: a row of equal lists may lead to a better one.
        if seconds <= least:
            found, least = other, seconds
    return found if least < shape.schedule.compute_s else steps


def _search_projects(
    best: EvaluatedGrouping, groups: Sequence[int], selection: Selection, placed: int
) -> dict[int, list[int]]:
    """Lists by the search for projects, the more steps placed the more the plan could gain; none for no effort."""
    problem, bound_s, makespan_s = selection.problem, selection.bound.seconds * (1 + CLOSE), best.cost.makespan_s
    placed = int(placed * min(1, (1 - bound_s / makespan_s) / WORTH_ALL))
    groups = [first for first in groups if len(best.members[first]) <= MOST]
    count, lists = sum([len(best.members[first]) for first in groups]), {}
    for first in groups if placed and count <= ALL else ():
        steps, shape = best.members[first], best.shapes[first]
        pool = _pool_cores(steps, shape, problem)
        # Shorter than that it would not make the plan any shorter: this is nearer than what holds for any list.
        floor_s = max(_bound_lists(steps, pool, problem), shape.schedule.compute_s - (makespan_s - bound_s))
        if floor_s < shape.schedule.compute_s:
            found = search_list(steps, problem, shape.slots, pool, floor_s, placed * len(steps) // count)
            if schedule_in_slots(found, problem, shape.slots, pool).compute_s < shape.schedule.compute_s:
                lists[first] = found
    return lists


def _pool_cores(steps: Sequence[int], shape: ExecutorShape, problem: Problem) -> CorePool:
    known = {worker.id: worker for worker in problem.arrays.workers}
    return pool_containers(make_demand("", steps, problem), shape.cores, [known[place] for place in shape.workers])


def _bound_lists(steps: Sequence[int], pool: CorePool, problem: Problem) -> float:
    """No list computes in less, or in so much less that it matters."""
    arrays, declared = problem.arrays, problem.graph.steps
    held = sum([arrays.needs[node].cores * declared[node].parallelism * arrays.runtime_s[node] for node in steps])
    return max(measure_longest_path(steps, problem), held / pool.cores) * (1 + CLOSE)


def _move_step(steps: Sequence[int], problem: Problem, rng: random.Random) -> list[int]:
    """The list with one step elsewhere: a random place, or as near to it as what waits for what lets it."""
    successors = problem.graph.successors
    at, to = rng.randrange(len(steps)), rng.randrange(len(steps))
    node, others = steps[at], [*steps[:at], *steps[at + 1 :]]
    # Step by step towards its new place, and no farther than its neighbours in the order of edges.
    while at > to and node not in successors[others[at - 1]]:
        at -= 1
    while at < to and others[at] not in successors[node]:
        at += 1
    return [*others[:at], node, *others[at:]]


def _merge_lists(lists: Mapping[int, Sequence[int]], group_of: GroupOf, evaluator: Evaluator) -> list[int]:
    """An order of all nodes with each group's steps as in its list; else as it was, as far as that goes."""
    order, successors = evaluator.start_order, evaluator.problem.graph.successors
    place = {node: at for at, node in enumerate(order)}
    edges = [[place[after] for after in successors[node] if group_of[after] != group_of[node]] for node in order]
    for steps in lists.values():
        for node, after in pairwise(steps):
            # Lists as edges: the order that keeps them all is one topological sort away.
            edges[place[node]].append(place[after])
    return [order[at] for at in sort_topologically(edges)]
