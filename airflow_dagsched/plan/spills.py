"""Spills: the pipelined channels that end in another group, one spill for each dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airflow_dagsched.model.graph import Dataset, Graph
from airflow_dagsched.plan.values import Spill


def find_spills(graph: Graph, home: Sequence[int], reason: Callable[[int, int], str]) -> tuple[Spill, ...]:
    """The spills, by their source's rank and output; ``home`` maps a node to its group.

    ``reason`` says why the channel between two steps is cut. A dataset that several groups read may be cut
    for several reasons: all are told, in the readers' order.
    """
    spills = []
    for dataset in graph.datasets:
        src, here = dataset.src, home[dataset.src]
        cut = [reader for reader in dataset.pipelined if home[reader] != here]
        if cut:
            reasons = dict.fromkeys([reason(src, reader) for reader in cut])
            spills.append(_spill(graph, dataset, cut, "; ".join(reasons)))
    return tuple(spills)


def _spill(graph: Graph, dataset: Dataset, cut: Sequence[int], reason: str) -> Spill:
    return Spill(
        src=graph.ids[dataset.src],
        output=dataset.output,
        dst=tuple([graph.ids[reader] for reader in cut]),
        bytes=dataset.bytes,
        reason=reason,
    )
