"""How long it takes from the start of each group to the end of the last behind it: what Airflow's priorities follow.

    {a 10} ──> (t 60) ──> {c 30}      with 8 s a start: a 8 + 10 + 60 + 8 + 30, b 8 + 100, c 8 + 30
    {b 100}                           of a and b, ready at once, a starts first

The longest path to the end in seconds (the b-level of list scheduling; Hu 1961). Airflow's own weight counts
the tasks downstream, however short they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import build_graph
from airflow_dagsched.model.order import sort_topologically
from airflow_dagsched.plan.grouping.coarsest import Grouped
from airflow_dagsched.plan.needs import resolve_step_runtime, resolve_task_runtime
from airflow_dagsched.plan.problem.partition import find_edges_between
from airflow_dagsched.plan.settings import DEFAULTS, Settings


def measure_remaining_s(
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
    graph = build_graph(dataflow)
    group_of = list(range(len(graph.ids)))
    first = {group.id: min(graph.index[step] for step in group.steps) for group in groups}
    for group in groups:
        for step in group.steps:
            group_of[graph.index[step]] = first[group.id]
    seconds = [0.0] * len(group_of)
    for task in dataflow.tasks:
        seconds[graph.index[task.id]] = resolve_task_runtime(task, settings)
    inside = _measure_paths(
        graph.condensed, [resolve_step_runtime(step, settings) for step in graph.steps], group_of, graph.loop
    )
    for name, node in first.items():
        # Predicted seconds hold the start, waves and spills: the path alone is less than any of them.
        seconds[node] = (known_s or {}).get(name, start_s + inside[node])
    edges = find_edges_between(graph, group_of)
    for node in reversed(sort_topologically(edges)):
        seconds[node] += max((seconds[after] for after in edges[node]), default=0.0)
    return {name: seconds[node] for name, node in first.items()}


def _measure_paths(
    edges: Sequence[Sequence[int]], runtime: Sequence[float], group_of: Sequence[int], loop: Sequence[int]
) -> list[float]:
    """For the first node of each group the longest path of steps within it; the steps of a loop count one by one."""
    path = [0.0] * len(group_of)
    for node, seconds in enumerate(runtime):
        # A loop's steps run one after another, at least once.
        path[loop[node]] += seconds
    longest = [0.0] * len(group_of)
    for node in reversed(sort_topologically(edges)):
        path[node] += max((path[after] for after in edges[node] if group_of[after] == group_of[node]), default=0.0)
        longest[group_of[node]] = max(longest[group_of[node]], path[node])
    return longest
