"""Weights by the longest remaining path."""

from __future__ import annotations

import networkx as nx
from hypothesis import given, settings

from airflow_dagsched.plan.rcpsp.project import Project
from airflow_dagsched.plan.weights import priority_weights
from tests.plan.rcpsp.drawn import projects


def test_a_long_task_outweighs_many_short_ones() -> None:
    """
    a(1) ──> b(1) ──> c(1)     3 seconds remain from a, 2 from b, 1 from c
    d(9)                       9 seconds remain from d
    """
    assert priority_weights([1, 1, 1, 9], [[1], [2], [], []]) == [3, 2, 1, 4]


def test_equal_paths_have_equal_weights() -> None:
    assert priority_weights([0.5, 2.0, 2.0, 0.0], [[1, 2], [], [], []]) == [3, 2, 2, 1]


def test_no_tasks_have_no_weights() -> None:
    assert priority_weights([], []) == []


@given(projects(20))
@settings(max_examples=40, deadline=None)
def test_weights_are_in_the_order_of_the_longest_remaining_paths(project: Project) -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(project.durations)))
    graph.add_edges_from((at, after) for at, nexts in enumerate(project.successors) for after in nexts)
    path: dict[int, int] = {}
    for at in reversed(list(nx.topological_sort(graph))):
        path[at] = project.durations[at] + max((path[after] for after in graph[at]), default=0)
    weights = priority_weights(project.durations, project.successors)
    assert all((path[a] < path[b]) == (weights[a] < weights[b]) for a in path for b in path)
    assert sorted(set(weights)) == list(range(1, len(set(path.values())) + 1))
