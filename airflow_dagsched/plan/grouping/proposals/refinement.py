"""Finer groupings: each group cut into a row of parts along a number that never falls along an edge.

    (t, 3 h) ──> c      number = late inputs      {a b} now, {c} when t is done: a and b need not wait
    a ══> b ══> c

No path leaves a group and comes back, so such a row leaves everything acyclic, whatever the number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import reverse_edges
from airflow_dagsched.plan.problem.partition import cut_groups, find_root, join_parts
from airflow_dagsched.plan.problem.problem import Problem

THRESHOLDS = 4
"""Different moments at which late inputs arrive that are tried as cuts."""


def split_unjoined(graph: Graph, group_of: Sequence[int]) -> list[int]:
    """The homes cut where no edge holds their steps together: no edge joins the parts, so all stays acyclic."""
    parent = list(graph.loop)
    for node, nexts in enumerate(graph.successors):
        for after in nexts:
            if group_of[node] == group_of[after]:
                join_parts(parent, node, after)
    return [find_root(parent, node) for node in range(len(parent))]


def list_refinements(problem: Problem, group_of: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Cuts that let others start sooner, or let steps start before late inputs, each with what it is for."""
    graph = problem.graph
    if not any(group_of):
        return  # One group of all there is waits for nothing.
    above = reverse_edges(graph.condensed)
    first = _mark_feeders(graph, group_of)
    last = _mark_takers(graph, group_of, above)
    # ``1 - feeds`` never falls along an edge: whoever is before a feeder feeds as well.
    yield "what others wait for first", cut_groups(graph, group_of, [1 - feeds for feeds in first])
    yield "what waits for others last", cut_groups(graph, group_of, last)
    both = [taker + 1 - feeds for taker, feeds in zip(last, first, strict=True)]
    yield "what others wait for first, what waits for others last", cut_groups(graph, group_of, both)
    arrival = _find_arrivals(problem, above)
    moments = sorted(set(arrival))  # of late ordinary tasks; 0 for what waits for none
    for late in _find_widest_gaps(moments):
        yield (
            f"what has to wait {late:g} s apart from the rest",
            cut_groups(graph, group_of, [int(at >= late) for at in arrival]),
        )
    if len(moments) > 2:
        yield "cut by when late inputs arrive", cut_groups(graph, group_of, [moments.index(at) for at in arrival])


def _mark_feeders(graph: Graph, group_of: Sequence[int]) -> list[int]:
    """1 for each node that something outside its group waits for, at once or later."""
    found = [0] * len(group_of)
    for node in reversed(graph.order):
        if graph.loop[node] == node:
            found[node] = int(any(group_of[after] != group_of[node] or found[after] for after in graph.condensed[node]))
    return found


def _mark_takers(graph: Graph, group_of: Sequence[int], above: Sequence[Sequence[int]]) -> list[int]:
    """1 for each node that waits for something outside its group, at once or later."""
    found = [0] * len(group_of)
    for node in graph.order:
        if graph.loop[node] == node:
            found[node] = int(any(group_of[before] != group_of[node] or found[before] for before in above[node]))
    return found


def _find_arrivals(problem: Problem, above: Sequence[Sequence[int]]) -> list[float]:
    """For each node when the last ordinary task above it can end: never falls along an edge."""
    graph, arrays = problem.graph, problem.arrays
    start = problem.cluster.application_start_s
    ready, arrival = [0.0] * len(graph.ids), [0.0] * len(graph.ids)
    end = [0.0] * len(graph.ids)
    for node in graph.order:
        if graph.loop[node] != node:
            continue
        before = above[node]
        ready[node] = max([end[one] for one in before], default=0.0)
        arrival[node] = max([arrival[one] if graph.is_step(one) else end[one] for one in before], default=0.0)
        # The first step behind a task begins an application of its own: its start counts there, and only there.
        fresh = graph.is_step(node) and ready[node] == arrival[node]
        end[node] = ready[node] + arrays.least_s[node] + (start if fresh else 0.0)
    return arrival


def _find_widest_gaps(moments: Sequence[float]) -> list[float]:
    """The moments right behind the widest gaps, earliest first."""
    # The widest first: differences are negative.
    gaps = sorted(pairwise(moments), key=lambda pair: (pair[0] - pair[1], pair[0]))
    return sorted(later for _, later in gaps[:THRESHOLDS])
