"""Datasets: what one output of a step holds, written once however many channels read it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_dagsched.model.dataflow import Channel
from airflow_dagsched.model.graph import Graph


@dataclass(slots=True)
class Dataset:
    """What one output of a step holds."""

    src: int
    output: str
    bytes: int
    readers: list[int]
    pipelined: list[int]
    """Those of the readers that are handed the rows inside the application, if they are in it."""


def datasets_of(graph: Graph) -> list[Dataset]:
    """The datasets by source and output."""
    found: dict[tuple[int, str], Dataset] = {}
    index = graph.index
    for channel in graph.dataflow.channels:
        src = index[channel.src]
        known = found.get((src, channel.output))
        if known is None:
            known = found[src, channel.output] = Dataset(src, channel.output, 0, [], [])
        _add(known, channel, index[channel.dst])
    return [_without_repeats(found[key]) for key in sorted(found)]


def _add(dataset: Dataset, channel: Channel, dst: int) -> None:
    """Channels of one dataset carry one size: the largest counts."""
    dataset.bytes = max(dataset.bytes, channel.bytes)
    dataset.readers.append(dst)
    if channel.kind == "pipelined":
        dataset.pipelined.append(dst)


def _without_repeats(dataset: Dataset) -> Dataset:
    if len(dataset.readers) > 1:
        dataset.readers = sorted(set(dataset.readers))
        dataset.pipelined = sorted(set(dataset.pipelined))
    return dataset
