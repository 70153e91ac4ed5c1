"""How long it takes from the start of each group to the end of the last behind it: what Airflow's priorities follow.

    {a 10} ──> (t 60) ──> {c 30}      with 8 s a start: a 8 + 10 + 60 + 8 + 30, b 8 + 100, c 8 + 30
    {b 100}                           of a and b, ready at once, a starts first

The longest path to the end in seconds (the b-level of list scheduling; Hu 1961). Airflow's own weight counts
the tasks downstream, however short they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import graph_of
from airflow_dagsched.model.order import topological
from airflow_dagsched.plan.groups import Grouped
from airflow_dagsched.plan.needs import runtime_of, task_runtime_of
from airflow_dagsched.plan.parts import quotient
from airflow_dagsched.plan.settings import DEFAULTS, Settings


def remaining_s(
    dataflow: Dataflow,
    groups: Sequence[Grouped],
    start_s: float,
    *,
    known_s: Mapping[str, float] | None = None,
    settings: Settings = DEFAULTS,
) -> dict[str, float]:
    """Seconds for each group of a valid ``dataflow``.

    :param start_s: what an application takes to start.
    :param known_s: seconds of groups that were predicted; of others, their longest path of steps counts.
    """
    graph = graph_of(dataflow)
    home = list(range(len(graph.ids)))
    first = {group.id: min(graph.index[step] for step in group.steps) for group in groups}
    for group in groups:
        for step in group.steps:
            home[graph.index[step]] = first[group.id]
    seconds = [0.0] * len(home)
    for task in dataflow.tasks:
        seconds[graph.index[task.id]] = task_runtime_of(task, settings)
    inside = _paths(graph.condensed, [runtime_of(step, settings) for step in graph.steps], home, graph.loop)
    for name, node in first.items():
        seconds[node] = (known_s or {}).get(name, start_s + inside[node])
    edges = quotient(graph, home)
    for node in reversed(topological(edges)):
        seconds[node] += max((seconds[after] for after in edges[node]), default=0.0)
    return {name: seconds[node] for name, node in first.items()}


def _paths(
    edges: Sequence[Sequence[int]], runtime: Sequence[float], home: Sequence[int], loop: Sequence[int]
) -> list[float]:
    """For the first node of each group the longest path of steps within it; the steps of a loop count one by one."""
    path = [0.0] * len(home)
    for node, seconds in enumerate(runtime):
        path[loop[node]] += seconds
    longest = [0.0] * len(home)
    for node in reversed(topological(edges)):
        path[node] += max((path[after] for after in edges[node] if home[after] == home[node]), default=0.0)
        longest[home[node]] = max(longest[home[node]], path[node])
    return longest
