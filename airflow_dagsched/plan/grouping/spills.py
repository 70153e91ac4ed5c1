"""Spills: the pipelined channels that end in another group, one spill for each dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from airflow_dagsched.model.graph import Dataset, Graph
from airflow_dagsched.plan.reasons.grouping import CutReason
from airflow_dagsched.plan.report.group_sentences import say_cuts
from airflow_dagsched.plan.spill import Spill


def find_spills(
    graph: Graph, group_of: Sequence[int], explain_cut: Callable[[int, int], CutReason]
) -> tuple[Spill, ...]:
    """The spills, by their source's rank and output; ``group_of`` maps a node to its group.

    ``explain_cut`` says why the channel between two steps is cut. A dataset that several groups read may be cut
    for several reasons: all are said, in the readers' order.
    """
    # Of 100,000 spills nearly all have one of a few reasons.
    spills, say = [], cache(say_cuts)
    for dataset in graph.datasets:
        src, here = dataset.src, group_of[dataset.src]
        # Buffered readers are no reason for a spill: they read what is stored in any case.
        cut = [reader for reader in dataset.pipelined if group_of[reader] != here]
        if cut:
            reason = say(tuple(dict.fromkeys([explain_cut(src, reader) for reader in cut])))
            spills.append(_make_spill(graph, dataset, cut, reason))
    return tuple(spills)


def _make_spill(graph: Graph, dataset: Dataset, cut: Sequence[int], reason: str) -> Spill:
    return Spill(
        src=graph.ids[dataset.src],
        output=dataset.output,
        dst=tuple([graph.ids[reader] for reader in cut]),
        bytes=dataset.bytes,
        reason=reason,
    )
