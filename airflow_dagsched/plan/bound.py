"""A lower bound of the makespan: no plan of this dataflow on any cluster that starts applications as slowly is faster.

Whatever the groups are, steps and tasks along a path run one after another, and before the first step of a
path one application must start. Steps of a streaming dataflow run side by side: there only the longest one
and the ordinary tasks count. Steps of a loop count once, for the longest of them.
"""

from __future__ import annotations

from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.needs import runtime_of, task_runtime_of

NEVER = float("-inf")


def lower_bound(given: Given) -> float:
    """Seconds; zero for a dataflow without steps and tasks."""
    graph = given.graph
    start = given.cluster.application_start_s
    weight, longest_step = _weights(given)
    edges = graph.condensed
    tasks_only = [0.0] * len(graph.ids)
    with_steps = [NEVER] * len(graph.ids)
    best = start + longest_step if graph.steps else 0.0
    for node in graph.order:
        if graph.loop[node] != node:
            continue
        if graph.is_step(node):
            with_steps[node] = max(with_steps[node], tasks_only[node] + start)
            tasks_only[node] = NEVER
        ends = tasks_only[node] + weight[node], with_steps[node] + weight[node]
        best = max(best, *ends)
        for after in edges[node]:
            tasks_only[after] = max(tasks_only[after], ends[0])
            with_steps[after] = max(with_steps[after], ends[1])
    return best


def _weights(given: Given) -> tuple[list[float], float]:
    """Seconds of each node as the paths count it, and of the longest step."""
    graph, settings = given.graph, given.settings
    runtimes = [runtime_of(step, settings) for step in graph.steps]
    streaming = any(step.mode == "streaming" for step in graph.steps)
    weight = [0.0] * len(graph.ids)
    for node, runtime in enumerate(runtimes):
        first = graph.loop[node]
        weight[first] = 0.0 if streaming else max(weight[first], runtime)
    for task in graph.dataflow.tasks:
        weight[graph.index[task.id]] = task_runtime_of(task, settings)
    return weight, max(runtimes, default=0.0)
