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

from airflow_dagsched.model.order import predecessors
from airflow_dagsched.plan.cost import Priced
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.launches.order import ready_at
from airflow_dagsched.plan.parts import acyclic, least_named
from airflow_dagsched.plan.search.choice import Choice

MOST_STEPS = 200
"""Larger dataflows are left as they are."""
FARTHEST = 0.05
"""How much worse, as a share of the best makespan, a step on the way may be at first."""
GATHERED = (2, 3, 5, 8, 13)
"""Neighbours that are moved into a group at once."""
STALE = 300
"""Changes in a row after which nothing new is expected."""
KIND = "small changes to the best"
SEED = 0


class _Ground(Struct, frozen=True):
    """What every change needs to know."""

    given: Given
    above: Sequence[Sequence[int]]
    """The edges backwards, with what is never split drawn together."""


def improve(choice: Choice) -> None:
    """Change the best grouping while that helps and the budget lasts."""
    if choice.best is None or len(choice.given.graph.ids) > MOST_STEPS:
        return
    ground = _Ground(choice.given, predecessors(choice.given.graph.condensed))
    _climb(choice, ground)
    if choice.open:
        _wander(choice, ground)


def _climb(choice: Choice, ground: _Ground) -> None:
    """From better to better, along the chain that decides."""
    improved = True
    while improved and choice.open:
        improved = False
        best = choice.best
        assert best is not None
        for home in _changes(ground, best, deciding(best)):
            if not choice.open:
                return
            choice.offer(KIND, home)
            if choice.best is not best:
                improved = True
                break


def _wander(choice: Choice, ground: _Ground) -> None:
    """Random changes from where we are, as long as they are not too much worse than the best."""
    rng = random.Random(SEED)
    here = choice.best
    assert here is not None
    whole, stale = choice.budget, 0
    while choice.open and stale < STALE:
        assert choice.best is not None
        home = _random_change(ground, here, rng)
        choice.budget -= len(here.home)
        stale += 1
        if home is None or tuple(home) in choice.seen:
            continue
        stale = 0
        found = choice.offer(KIND, home)
        limit = choice.best.cost.makespan_s * (1 + FARTHEST * choice.budget / whole)
        if found is not None and found.cost.makespan_s <= limit:
            here = found


def deciding(best: Priced) -> list[int]:
    """Groups back from the last end: each started when the next ended, because it waited for it, or for its room."""
    above: dict[int, list[int]] = {node: [] for node in best.edges}
    for node, nexts in best.edges.items():
        for after in nexts:
            above[after].append(node)
    by_end: dict[float, list[int]] = {}
    for node, span in best.spans.items():
        by_end.setdefault(span.end_s, []).append(node)
    node = max(best.spans, key=lambda node: (best.spans[node].end_s, -node))
    chain = {node: None}
    while best.spans[node].start_s > 0:
        ended = [one for one in by_end[best.spans[node].start_s] if one not in chain]
        if not ended:  # but what takes no time, which ends where it starts
            break
        node = min([one for one in above[node] if one in ended] or ended)
        chain[node] = None
    return [node for node in chain if node in best.members]


def _changes(ground: _Ground, best: Priced, groups: Sequence[int]) -> Iterator[list[int]]:
    """All valid merges, moves and partings of these groups."""
    given, neighbours = ground.given, _neighbours(best)
    for group in groups:
        units = _units(given, best, group)
        for other in neighbours[group]:
            yield from _valid(given, best.home, best.members[group], other)
        for count in GATHERED:
            for backwards in (True, False):
                yield from _gathered(ground, best, group, count, backwards=backwards)
        for steps in units if len(units) > 1 else ():
            for other in (len(best.home), *neighbours[group]):
                yield from _valid(given, best.home, steps, other)


def _random_change(ground: _Ground, here: Priced, rng: random.Random) -> list[int] | None:
    """One change, every other time on the deciding chain; None if it would break a rule or close a cycle."""
    given = ground.given
    group = rng.choice(deciding(here) if rng.random() < 0.5 else sorted(here.members))
    if rng.random() < 0.3:
        count = rng.randint(1, max(GATHERED))
        return next(_gathered(ground, here, group, count, backwards=rng.random() < 0.5), None)
    to = rng.choice([*_neighbours(here)[group], len(here.home)])
    steps = here.members[group]
    if rng.random() < 0.7:
        steps = rng.choice(_units(given, here, group))
        if rng.random() < 0.5:
            steps = _with_followers(ground, here.home, steps, backwards=rng.random() < 0.3)
    return next(_valid(given, here.home, steps, to), None)


def _with_followers(ground: _Ground, home: Sequence[int], steps: Sequence[int], *, backwards: bool) -> list[int]:
    """The steps with all behind them (before them) in their group: what can leave it without a cycle."""
    graph = ground.given.graph
    edges = ground.above if backwards else graph.condensed
    found = [graph.loop[steps[0]]]
    for unit in found:
        found += [other for other in edges[unit] if home[other] == home[unit] and other not in found]
    units = set(found)
    return [node for node, of in enumerate(graph.loop) if of in units]


def _gathered(ground: _Ground, here: Priced, group: int, count: int, *, backwards: bool) -> Iterator[list[int]]:
    """``count`` units right before the group (behind it), those that end last (start first), moved into it."""
    given = ground.given
    graph, home, spans = given.graph, here.home, here.spans
    edges = ground.above if backwards else graph.condensed
    found = {other for node in here.members[group] for other in edges[graph.loop[node]] if graph.is_step(other)}
    near = sorted(other for other in found if home[other] != group)
    near.sort(key=lambda other: -spans[home[other]].end_s if backwards else spans[home[other]].start_s)
    units = set(near[:count])
    if len(units) == count:
        yield from _valid(given, home, [node for node, of in enumerate(graph.loop) if of in units], group)


def _neighbours(best: Priced) -> dict[int, list[int]]:
    """Groups before and behind each group; where no group waits for another's end, those that wait for its room."""
    found: dict[int, set[int]] = {node: set() for node in best.members}
    _pair(found, ((node, after) for node, nexts in best.edges.items() for after in nexts))
    if not any(found.values()):
        _pair(found, _made_room(best))
    return {node: sorted(others) for node, others in found.items()}


def _pair(found: dict[int, set[int]], pairs: Iterable[tuple[int, int]]) -> None:
    for node, other in pairs:
        if node in found and other in found:
            found[node].add(other)
            found[other].add(node)


def _made_room(best: Priced) -> Iterator[tuple[int, int]]:
    """Pairs of a group and one that started when it ended, though that had been ready before."""
    ready = ready_at(best)
    ended: dict[float, list[int]] = {}
    for node in best.members:
        ended.setdefault(best.spans[node].end_s, []).append(node)
    for node in best.members:
        start = best.spans[node].start_s
        if start > ready[node]:
            yield from ((other, node) for other in ended.get(start, ()))


def _units(given: Given, best: Priced, group: int) -> list[list[int]]:
    """The steps of a group, those that are never split together."""
    units: dict[int, list[int]] = {}
    for node in best.members[group]:
        units.setdefault(given.graph.loop[node], []).append(node)
    return [units[first] for first in sorted(units)]


def _valid(given: Given, home: Sequence[int], steps: Sequence[int], to: int) -> Iterator[list[int]]:
    """The homes with ``steps`` moved to group ``to`` (the number of nodes: a new one), if that may be."""
    moved = list(home)
    for node in steps:
        moved[node] = to
    members = [node for node, of in enumerate(moved) if of == to]
    if may_share(given, members):
        named = least_named(moved)
        if acyclic(given.graph, named):
            yield named


def may_share(given: Given, members: Sequence[int]) -> bool:
    """Whether these may be one group."""
    rules, loop = given.rules, given.graph.loop
    if len({rules.color[node] for node in members}) > 1 or len(members) > rules.most_steps:
        return False
    units = {loop[node] for node in members}
    return all(units.isdisjoint(rules.apart.get(unit, ())) for unit in units)
