"""A dataflow as a graph of numbers, ranked: equal dataflows give equal graphs, however they were written down.

Nodes ``0 .. steps-1`` are the steps by (order, natural id), the rest are the ordinary tasks by natural id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.order import natural_key, strong_components, topological


@dataclass(frozen=True, slots=True)
class Graph:
    """Steps, tasks and all edges between them; self loops and repeated edges are left out."""

    dataflow: Dataflow
    steps: tuple[Step, ...]
    """Of the dataflow, ranked."""
    ids: tuple[str, ...]
    index: dict[str, int]
    successors: tuple[tuple[int, ...], ...]
    pipelined: dict[tuple[int, int], int]
    """Bytes of the pipelined channels between each two steps."""
    plain: tuple[tuple[int, int], ...]
    """Edges from step to step that carry no rows at all."""
    loop: tuple[int, ...]
    """For each node the first node of the loop it is in: itself if it is in none."""
    condensed: Sequence[Sequence[int]]
    """The edges with each loop drawn together into its first node: without cycles."""
    order: tuple[int, ...]
    """All nodes, topological, the least free one first; a loop counts as one node, its steps by rank."""

    def is_step(self, node: int) -> bool:
        return node < len(self.steps)


def graph_of(dataflow: Dataflow) -> Graph:
    """The graph of a dataflow whose ids are unique and whose edges end at known ids."""
    steps = tuple(sorted(dataflow.steps, key=step_rank))
    ids = (*(step.id for step in steps), *sorted((task.id for task in dataflow.tasks), key=natural_key))
    index = {name: node for node, name in enumerate(ids)}
    successors = _successors(dataflow, index)
    loop = tuple(strong_components(successors))
    condensed = _condensed(successors, loop)
    return Graph(
        dataflow,
        steps,
        ids,
        index,
        successors,
        _pipelined(dataflow, index),
        _plain(dataflow, index),
        loop,
        condensed,
        _order(condensed, loop),
    )


def step_rank(step: Step) -> tuple[int, object]:
    """Sorts steps as their author wrote them, then by natural id."""
    return step.order, natural_key(step.id)


def _pipelined(dataflow: Dataflow, index: dict[str, int]) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for channel in dataflow.channels:
        if channel.kind == "pipelined":
            ends = index[channel.src], index[channel.dst]
            found[ends] = found.get(ends, 0) + channel.bytes
    return found


def _plain(dataflow: Dataflow, index: dict[str, int]) -> tuple[tuple[int, int], ...]:
    steps = len(dataflow.steps)
    if not dataflow.dependencies:
        return ()
    carrying = {(index[channel.src], index[channel.dst]) for channel in dataflow.channels}
    edges = {(index[before], index[after]) for before, after in dataflow.dependencies} - carrying
    return tuple(sorted(edge for edge in edges if max(edge) < steps))


def _successors(dataflow: Dataflow, index: dict[str, int]) -> tuple[tuple[int, ...], ...]:
    edges = {(index[channel.src], index[channel.dst]) for channel in dataflow.channels}
    edges.update((index[before], index[after]) for before, after in dataflow.dependencies)
    found: list[list[int]] = [[] for _ in index]
    for node, after in sorted(edges):
        if node != after:
            found[node].append(after)
    return tuple(tuple(nexts) for nexts in found)


def _condensed(successors: tuple[tuple[int, ...], ...], loop: tuple[int, ...]) -> Sequence[Sequence[int]]:
    if len(set(loop)) == len(loop):
        return successors
    found: list[set[int]] = [set() for _ in loop]
    for node, nexts in enumerate(successors):
        found[loop[node]].update(loop[after] for after in nexts)
    return [sorted(nexts - {node}) for node, nexts in enumerate(found)]


def _order(condensed: Sequence[Sequence[int]], loop: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(loop)) == len(loop):
        return tuple(topological(condensed))
    members: dict[int, list[int]] = {}
    for node, first in enumerate(loop):
        members.setdefault(first, []).append(node)
    return tuple(node for first in topological(condensed) for node in members.get(first, ()))
