"""Spills: the pipelined channels that end in another group, one spill for each dataset."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.dataflow import Channel
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.plan.reasons import cut_reason
from airflow_dagsched.plan.stages import Stages
from airflow_dagsched.plan.values import Spill

Dataset = tuple[int, str]


def find_spills(graph: Graph, stages: Stages, home: Sequence[int]) -> tuple[Spill, ...]:
    """The spills, by their source's rank and output; ``home`` maps a node to its group."""
    size: dict[Dataset, int] = {}
    readers: dict[Dataset, set[int]] = {}
    for channel in graph.dataflow.channels:
        src, dst = graph.index[channel.src], graph.index[channel.dst]
        dataset = src, channel.output
        size[dataset] = max(size.get(dataset, 0), channel.bytes)
        if _is_cut(channel, src, dst, home):
            readers.setdefault(dataset, set()).add(dst)
    return tuple(_spill(graph, stages, dataset, readers[dataset], size[dataset]) for dataset in sorted(readers))


def _is_cut(channel: Channel, src: int, dst: int, home: Sequence[int]) -> bool:
    return channel.kind == "pipelined" and home[src] != home[dst]


def _spill(graph: Graph, stages: Stages, dataset: Dataset, readers: set[int], size: int) -> Spill:
    """A dataset that several groups read may be cut for several reasons: all are told, in the readers' order."""
    src, output = dataset
    found = sorted(readers)
    reasons = dict.fromkeys(cut_reason(graph, stages, src, dst) for dst in found)
    return Spill(
        src=graph.ids[src],
        output=output,
        dst=tuple(graph.ids[dst] for dst in found),
        bytes=size,
        reason="; ".join(reasons),
    )
