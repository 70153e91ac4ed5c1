"""Rules of a dataflow and a cluster that types alone cannot say. All raise ``InvalidInput``, the first found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter, eq

import msgspec

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import check_value
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.graph import Graph, build_graph
from airflow_dagsched.model.order import find_cycle, sort_naturally

Finding = tuple[str, str]
"""Field path and the rule it breaks."""

_id, _src, _dst = attrgetter("id"), attrgetter("src"), attrgetter("dst")


def validate_dataflow(dataflow: Dataflow, where: str = "") -> Dataflow:
    """The dataflow, its types, ranges and rules checked; ``where`` names the file or DAG in the error."""
    return build_valid_graph(dataflow, where).dataflow


def build_valid_graph(dataflow: Dataflow, where: str = "") -> Graph:
    """The graph of the validated dataflow."""
    where = where or f"dataflow {dataflow.name!r}"
    valid = check_value(Dataflow, dataflow, where)
    # In this order: a graph can be made of unique names and known ends only, and cycles looked for in a graph.
    _refuse_first(where, _find_broken_names(valid))
    _refuse_first(where, _find_broken_ends(valid))
    graph = build_graph(valid)
    _refuse_first(where, _find_broken_cycles(graph))
    _refuse_first(where, _find_broken_loops(graph))
    return graph


def validate_cluster(cluster: Cluster, where: str = "cluster") -> Cluster:
    """The cluster, its types, ranges and rules checked."""
    valid = check_value(Cluster, cluster, where)
    _refuse_first(where, _find_repeated((f"workers[{at}].id", worker.id) for at, worker in enumerate(valid.workers)))
    if valid.manager == "local" and len(valid.workers) != 1:
        raise InvalidInput(where, "workers", f"manager 'local' has exactly one worker, not {len(valid.workers)}")
    return valid


def _refuse_first(where: str, findings: Iterator[Finding]) -> None:
    for field, rule in findings:
        raise InvalidInput(where, field, rule)


def _find_repeated(named: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for field, name in named:
        if name in seen:
            yield field, f"id {name!r} is taken by {seen[name]}"
        seen[name] = field


def _find_broken_names(dataflow: Dataflow) -> Iterator[Finding]:
    if len({*map(_id, dataflow.steps), *map(_id, dataflow.tasks)}) == len(dataflow.steps) + len(dataflow.tasks):
        return  # of 100,000 steps, quickly
    steps = [(f"steps[{at}].id", step.id) for at, step in enumerate(dataflow.steps)]
    tasks = [(f"tasks[{at}].id", task.id) for at, task in enumerate(dataflow.tasks)]
    yield from _find_repeated(steps + tasks)


def _find_broken_ends(dataflow: Dataflow) -> Iterator[Finding]:
    steps, tasks = {*map(_id, dataflow.steps)}, {*map(_id, dataflow.tasks)}
    known = steps.issuperset(map(_src, dataflow.channels)) and steps.issuperset(map(_dst, dataflow.channels))
    for at, channel in enumerate(() if known else dataflow.channels):
        if channel.src not in steps:
            yield _explain_channel_end(f"channels[{at}].src", channel.src, tasks)
        if channel.dst not in steps:
            yield _explain_channel_end(f"channels[{at}].dst", channel.dst, tasks)
    for at, edge in enumerate(dataflow.dependencies):
        for side, name in enumerate(edge):
            if name not in steps and name not in tasks:
                yield f"dependencies[{at}][{side}]", f"no step or task is called {name!r}"


def _explain_channel_end(field: str, name: str, tasks: set[str]) -> Finding:
    if name in tasks:
        return field, f"{name!r} is an ordinary task: a channel joins two steps (use dependencies for other edges)"
    return field, f"no step is called {name!r}"


def _find_broken_cycles(graph: Graph) -> Iterator[Finding]:
    for node in range(len(graph.ids) if graph.has_loops else 0):
        if not _may_repeat(graph, node):
            path = find_cycle(graph.successors, node, graph.loop)
            if path:
                yield "", _explain_cycle([graph.ids[at] for at in path])
    for name in _find_own_readers(graph.dataflow):
        if not _may_repeat(graph, graph.index[name]):
            yield "", _explain_cycle([name, name])


def _find_own_readers(dataflow: Dataflow) -> Iterator[str]:
    """Steps and tasks with an edge to themselves."""
    channels = dataflow.channels
    if any(map(eq, map(_src, channels), map(_dst, channels))):
        yield from (channel.src for channel in channels if channel.src == channel.dst)
    yield from (src for src, dst in dataflow.dependencies if src == dst)


def _may_repeat(graph: Graph, node: int) -> bool:
    return graph.is_step(node) and graph.steps[node].repeat


def _explain_cycle(path: list[str]) -> str:
    return f"cycle {' -> '.join(path)}: only steps that are all marked repeat may form one"


def _find_broken_loops(graph: Graph) -> Iterator[Finding]:
    """Steps of a loop run in one application, launched from one pool, so their settings must agree."""
    for node, step in enumerate(graph.steps if graph.has_loops else ()):
        first = graph.steps[graph.loop[node]]
        differing = ", ".join(_list_differing(first, step))
        if differing:
            yield (
                "",
                f"steps {first.id!r} and {step.id!r} repeat together but differ in application settings {differing}",
            )
        if first.pool != step.pool:
            rule = f"repeat together but are of the pools {first.pool!r} and {step.pool!r}"
            yield "", f"steps {first.id!r} and {step.id!r} {rule}"


def _list_differing(one: Step, other: Step) -> list[str]:
    """Settings are told apart as JSON writes them: 1 is not true, and null is not nothing."""
    keys = one.application.keys() | other.application.keys()
    return sort_naturally(key for key in keys if _encode_setting(one, key) != _encode_setting(other, key))


def _encode_setting(step: Step, key: str) -> bytes:
    return msgspec.json.encode(step.application[key]) if key in step.application else b""
