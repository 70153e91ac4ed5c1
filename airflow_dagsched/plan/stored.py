"""Bytes that each group reads from, and writes for, other groups: spills and buffered channels between them."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.values import Plan


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes of datasets read from earlier groups and written for later ones, each once."""

    read: int
    written: int


def stored_bytes(made: Plan, dataflow: Dataflow) -> dict[str, Stored]:
    """For each group of ``made``. Channels of one dataset carry one size: the largest counts."""
    home = {step: group.id for group in made.groups for step in group.steps}
    size: dict[tuple[str, str], int] = {}
    read: dict[str, set[tuple[str, str]]] = {group.id: set() for group in made.groups}
    written: dict[str, set[tuple[str, str]]] = {group.id: set() for group in made.groups}
    for channel in dataflow.channels:
        dataset = channel.src, channel.output
        size[dataset] = max(size.get(dataset, 0), channel.bytes)
        if home[channel.src] != home[channel.dst]:
            read[home[channel.dst]].add(dataset)
            written[home[channel.src]].add(dataset)
    return {
        name: Stored(sum(size[dataset] for dataset in read[name]), sum(size[dataset] for dataset in written[name]))
        for name in read
    }
