"""A dataflow as a graph of numbers, ranked: equal dataflows give equal graphs, however they were written down.

Nodes ``0 .. steps-1`` are the steps by (order, natural id), the rest are the ordinary tasks by natural id.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from msgspec import Struct

from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.order import find_strong_components, natural_key, sort_topologically

_channel = attrgetter("src", "dst", "output", "bytes", "kind")


class Dataset(Struct):
    """What one output of a step holds: written once, however many channels read it."""

    src: int
    output: str
    bytes: int
    """That a cut writes and has read again. None where all readers are buffered: these read what is stored in any
    case, in its writer's group as in another, so a cut adds nothing to what their steps take.
    """
    readers: list[int]
    pipelined: list[int]
    """Those of the readers that are handed the rows inside the application, if they are in it."""


class Graph(Struct, frozen=True):
    """Steps, tasks and all edges between them; self loops and repeated edges are left out."""

    dataflow: Dataflow
    steps: tuple[Step, ...]
    """Of the dataflow, ranked."""
    ids: tuple[str, ...]
    index: dict[str, int]
    successors: tuple[tuple[int, ...], ...]
    datasets: Sequence[Dataset]
    """By source and output."""
    plain: tuple[tuple[int, int], ...]
    """Edges from step to step that carry no rows at all."""
    loop: tuple[int, ...]
    """For each node the first node of the loop it is in: itself if it is in none."""
    condensed: Sequence[Sequence[int]]
    """The edges with each loop drawn together into its first node: without cycles."""
    followers: Sequence[Sequence[int]]
    """For each node what begins only behind it: a loop begins, and ends, as one. Within a loop its own edges."""
    order: tuple[int, ...]
    """All nodes, topological, the least free one first; a loop counts as one node, its steps by rank."""

    @property
    def has_loops(self) -> bool:
        """Whether any nodes form a loop."""
        return self.condensed is not self.successors

    def is_step(self, node: int) -> bool:
        """Whether the node is a step; else it is an ordinary task."""
        return node < len(self.steps)


def build_graph(dataflow: Dataflow) -> Graph:
    """The graph of a dataflow whose ids are unique and whose edges end at known ids."""
    steps = _rank_steps(dataflow.steps)
    ids = (*(step.id for step in steps), *sorted((task.id for task in dataflow.tasks), key=natural_key))
    index = {name: node for node, name in enumerate(ids)}
    nexts, datasets = _collect_channels(dataflow, index)
    # Before the successors, which add dependencies to ``nexts``: here it has channels alone.
    plain = _list_plain_edges(dataflow, index, nexts)
    successors = _list_successors(dataflow, index, nexts)
    order = sort_topologically(successors)
    if len(order) == len(ids):
        alone = tuple(range(len(ids)))
        return Graph(
            dataflow, steps, ids, index, successors, datasets, plain, alone, successors, successors, tuple(order)
        )
    loop = tuple(find_strong_components(successors))
    condensed, members = _contract_loops(successors, loop), _list_members(loop)
    followers = _list_followers(successors, loop, condensed, members)
    ranked = tuple(node for first in sort_topologically(condensed) for node in members.get(first, ()))
    return Graph(dataflow, steps, ids, index, successors, datasets, plain, loop, condensed, followers, ranked)


def _rank_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Names are looked at only where steps share a place, which those of a DAG file do not."""
    alone = len({step.order for step in steps}) == len(steps)
    return tuple(sorted(steps, key=attrgetter("order") if alone else rank_step))


def rank_step(step: Step) -> tuple[int, object]:
    """Sorts steps as their author wrote them, then by natural id."""
    return step.order, natural_key(step.id)


def _collect_channels(dataflow: Dataflow, index: dict[str, int]) -> tuple[list[list[int]], list[Dataset]]:
    """For each node those that read from it, with repeats; and the datasets.

    Channels of one dataset carry one size: the largest counts, if any of them is pipelined.
    """
    nexts: list[list[int]] = [[] for _ in index]
    outputs: list[dict[str, Dataset]] = [{} for _ in index]
    for name, reader, output, size, kind in map(_channel, dataflow.channels):
        src, dst = index[name], index[reader]
        nexts[src].append(dst)
        known = outputs[src].get(output)
        if known is None:
            known = outputs[src][output] = Dataset(src, output, size, [], [])
        elif size > known.bytes:
            known.bytes = size
        known.readers.append(dst)
        if kind == "pipelined":
            known.pipelined.append(dst)
    return nexts, [_drop_repeats(found[output]) for found in outputs for output in sorted(found)]


def _drop_repeats(dataset: Dataset) -> Dataset:
    if not dataset.pipelined:
        dataset.bytes = 0
    if len(dataset.readers) > 1:
        alike = len(dataset.pipelined) == len(dataset.readers)
        dataset.readers = sorted(set(dataset.readers))
        dataset.pipelined = dataset.readers if alike else sorted(set(dataset.pipelined))
    return dataset


def _list_plain_edges(dataflow: Dataflow, index: dict[str, int], nexts: list[list[int]]) -> tuple[tuple[int, int], ...]:
    steps = len(dataflow.steps)
    edges = {(index[before], index[after]) for before, after in dataflow.dependencies}
    return tuple(sorted((src, dst) for src, dst in edges if max(src, dst) < steps and dst not in nexts[src]))


def _list_successors(dataflow: Dataflow, index: dict[str, int], nexts: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    for before, after in dataflow.dependencies:
        nexts[index[before]].append(index[after])
    return tuple(tuple(sorted(set(afters) - {node})) if afters else () for node, afters in enumerate(nexts))


def _contract_loops(successors: tuple[tuple[int, ...], ...], loop: tuple[int, ...]) -> Sequence[Sequence[int]]:
    found: list[set[int]] = [set() for _ in loop]
    for node, nexts in enumerate(successors):
        found[loop[node]].update(loop[after] for after in nexts)
    # Edges within a loop have become edges to itself.
    return [sorted(nexts - {node}) for node, nexts in enumerate(found)]


def _list_members(loop: tuple[int, ...]) -> dict[int, list[int]]:
    """The nodes of each loop, and each node alone, by the first of them."""
    members: dict[int, list[int]] = {}
    for node, first in enumerate(loop):
        members.setdefault(first, []).append(node)
    return members


def _list_followers(
    successors: Sequence[Sequence[int]],
    loop: tuple[int, ...],
    condensed: Sequence[Sequence[int]],
    members: dict[int, list[int]],
) -> list[list[int]]:
    behind = {first: [node for after in condensed[first] for node in members[after]] for first in members}
    within = ([after for after in nexts if loop[after] == loop[node]] for node, nexts in enumerate(successors))
    return [[*inside, *behind[loop[node]]] for node, inside in enumerate(within)]
