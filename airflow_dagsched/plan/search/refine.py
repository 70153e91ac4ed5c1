"""Finer groupings: each group cut into a row of parts along a number that never falls along an edge.

    (t, 3 h) ──> c      number = late inputs      {a b} now, {c} when t is done: a and b need not wait
    a ══> b ══> c

No path leaves a group and comes back, so such a row leaves everything acyclic, whatever the number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import predecessors
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.parts import cut_by, find, join

THRESHOLDS = 4
"""Different moments at which late inputs arrive that are tried as cuts."""


def components(graph: Graph, home: Sequence[int]) -> list[int]:
    """The homes cut where no edge holds their steps together: no edge joins the parts, so all stays acyclic."""
    parent = list(graph.loop)
    for node, nexts in enumerate(graph.successors):
        for after in nexts:
            if home[node] == home[after]:
                join(parent, node, after)
    return [find(parent, node) for node in range(len(parent))]


def refinements(given: Given, home: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Cuts that let others start sooner, or let steps start before late inputs, each with what it is for."""
    graph = given.graph
    if not any(home):
        return  # One group of all there is waits for nothing.
    above = predecessors(graph.condensed)
    first = _feeders(graph, home)
    last = _takers(graph, home, above)
    yield "what others wait for first", cut_by(graph, home, [1 - feeds for feeds in first])
    yield "what waits for others last", cut_by(graph, home, last)
    both = [taker + 1 - feeds for taker, feeds in zip(last, first, strict=True)]
    yield "what others wait for first, what waits for others last", cut_by(graph, home, both)
    arrival = _arrivals(given, above)
    moments = sorted(set(arrival))
    for late in _widest_gaps(moments):
        yield f"what can start only after {late:g} s apart", cut_by(graph, home, [int(at >= late) for at in arrival])
    if len(moments) > 2:
        yield "by when late inputs arrive", cut_by(graph, home, [moments.index(at) for at in arrival])


def _feeders(graph: Graph, home: Sequence[int]) -> list[int]:
    """1 for each node that something outside its group waits for, at once or later."""
    found = [0] * len(home)
    for node in reversed(graph.order):
        if graph.loop[node] == node:
            found[node] = int(any(home[after] != home[node] or found[after] for after in graph.condensed[node]))
    return found


def _takers(graph: Graph, home: Sequence[int], above: Sequence[Sequence[int]]) -> list[int]:
    """1 for each node that waits for something outside its group, at once or later."""
    found = [0] * len(home)
    for node in graph.order:
        if graph.loop[node] == node:
            found[node] = int(any(home[before] != home[node] or found[before] for before in above[node]))
    return found


def _arrivals(given: Given, above: Sequence[Sequence[int]]) -> list[float]:
    """For each node when the last ordinary task above it can end: never falls along an edge."""
    graph, work = given.graph, given.work
    start = given.cluster.application_start_s
    ready, arrival = [0.0] * len(graph.ids), [0.0] * len(graph.ids)
    end = [0.0] * len(graph.ids)
    for node in graph.order:
        if graph.loop[node] != node:
            continue
        before = above[node]
        ready[node] = max([end[one] for one in before], default=0.0)
        arrival[node] = max([arrival[one] if graph.is_step(one) else end[one] for one in before], default=0.0)
        fresh = graph.is_step(node) and ready[node] == arrival[node]
        end[node] = ready[node] + work.least[node] + (start if fresh else 0.0)
    return arrival


def _widest_gaps(moments: Sequence[float]) -> list[float]:
    """The moments right behind the widest gaps, earliest first."""
    gaps = sorted(pairwise(moments), key=lambda pair: (pair[0] - pair[1], pair[0]))
    return sorted(later for _, later in gaps[:THRESHOLDS])
