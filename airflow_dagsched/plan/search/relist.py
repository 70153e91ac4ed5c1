"""The list in whose order the steps of a batch group start, changed where the plan then ends sooner.

    4 cores, a: 5 x 30 s, b: 60 s

    longest remaining path first   |a a a a|a b . .|. b . .|   90 s: b finds no core beside a's first wave
    b first                        |b a a a|b a a .|           60 s

Longest remaining path first (see ``work``) is a rule of thumb: where wide steps come in waves, other lists are often
better. Steps are put elsewhere in the lists of the groups that decide the makespan, one at a time, from a fixed seed,
and stay there where the group computes no longer. The effort is counted: equal facts, equal lists.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.order import topological
from airflow_dagsched.plan.cost import Home, Priced, price
from airflow_dagsched.plan.demand import demand_of
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.inside import Pool, in_slots, longest_path
from airflow_dagsched.plan.search.choice import CLOSE, Choice
from airflow_dagsched.plan.search.moves import deciding
from airflow_dagsched.plan.shape import Shape, pool_of

EFFORT = 1_500
"""Steps and instances that schedules of other lists may go over, all together: about a millisecond."""
STARTS = 3
"""A step costs so many times what one of its instances does."""
SEED = 0


def relist(choice: Choice, effort: int = EFFORT) -> None:
    """Change the lists of the best grouping, and with them the order that whoever comes later is given."""
    best, given = choice.best, choice.given
    if best is None or choice.proved:
        return
    lists = dict(best.members)
    for first in deciding(best):
        each = sum([STARTS + given.graph.steps[node].parallelism for node in lists[first]])
        if first in best.shapes and effort >= each:
            lists[first] = _changed(lists[first], best.shapes[first], given, effort // each)
            effort %= each
    if lists != best.members:
        _take(choice, best, _in_lists(lists, best.home, given))


def _take(choice: Choice, best: Priced, order: Sequence[int]) -> None:
    """The best grouping with its steps in this order, if that is better."""
    given = replace(choice.given, work=replace(choice.given.work, order=order))
    try:
        priced = price(best.home, given)
    except DoesNotFit:  # at other times there may be less room for spills
        return
    if priced.cost < best.cost:
        choice.given = given
        choice.take(choice.chosen, priced)


def _changed(steps: list[int], shape: Shape, given: Given, tries: int) -> list[int]:
    """The best list found for a group that is sized as ``shape``."""
    if shape.residency == "all" or any(given.graph.loop[node] != node for node in steps):
        return steps
    known = {worker.id: worker for worker in given.work.workers}
    pool = pool_of(demand_of("", steps, given), shape.cores, [known[place] for place in shape.places])
    least, floor = shape.inside.compute_s, _floor(steps, pool, given)
    found, rng = steps, random.Random(SEED)
    for _ in range(tries):
        if least <= floor:
            break
        other = _moved(found, given, rng)
        seconds = in_slots(other, given, shape.slots, pool).compute_s
        if seconds <= least:
            found, least = other, seconds
    return found if least < shape.inside.compute_s else steps


def _floor(steps: Sequence[int], pool: Pool, given: Given) -> float:
    """No list computes in less, or in so much less that it matters."""
    work, declared = given.work, given.graph.steps
    held = sum([work.needs[node].cores * declared[node].parallelism * work.runtime[node] for node in steps])
    return max(longest_path(steps, given), held / pool.cores) * (1 + CLOSE)


def _moved(steps: Sequence[int], given: Given, rng: random.Random) -> list[int]:
    """The list with one step elsewhere: a random place, or as near to it as what waits for what lets it."""
    successors = given.graph.successors
    at, to = rng.randrange(len(steps)), rng.randrange(len(steps))
    node, others = steps[at], [*steps[:at], *steps[at + 1 :]]
    while at > to and node not in successors[others[at - 1]]:
        at -= 1
    while at < to and others[at] not in successors[node]:
        at += 1
    return [*others[:at], node, *others[at:]]


def _in_lists(lists: Mapping[int, Sequence[int]], home: Home, given: Given) -> list[int]:
    """An order of all nodes with each group's steps as in its list; else as it was, as far as that goes."""
    place = {node: at for at, node in enumerate(given.work.order)}
    edges = [
        [place[after] for after in given.graph.successors[node] if home[after] != home[node]]
        for node in given.work.order
    ]
    for steps in lists.values():
        for node, after in pairwise(steps):
            edges[place[node]].append(place[after])
    return [given.work.order[at] for at in topological(edges)]
