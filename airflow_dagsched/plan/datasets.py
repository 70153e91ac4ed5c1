"""Datasets: what one output of a step holds, written once however many channels read it."""

from __future__ import annotations

from dataclasses import dataclass

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
    """The datasets by source and output. Channels of one dataset carry one size: the largest counts."""
    found: dict[tuple[int, str], Dataset] = {}
    index = graph.index
    for channel in graph.dataflow.channels:
        key = index[channel.src], channel.output
        known = found.get(key)
        if known is None:
            known = found[key] = Dataset(*key, 0, [], [])
        if channel.bytes > known.bytes:
            known.bytes = channel.bytes
        known.readers.append(index[channel.dst])
        if channel.kind == "pipelined":
            known.pipelined.append(index[channel.dst])
    return [_without_repeats(found[key]) for key in sorted(found)]


def _without_repeats(dataset: Dataset) -> Dataset:
    if len(dataset.readers) > 1:
        dataset.readers = sorted(set(dataset.readers))
        dataset.pipelined = sorted(set(dataset.pipelined))
    return dataset
