"""Dataflow and cluster as the history knows them: measured values in place of declared ones.

What is measured costs or saves time; it never refuses a launch. So measured memory counts up to what the
largest worker can give one instance, and what its author declares counts in full.
"""

from __future__ import annotations

import math

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.model.state import Measured, State, apply_connection, apply_measured, expect_warm
from airflow_dagsched.placement.containers.sizing import compute_usable_memory
from airflow_dagsched.plan.narrowed import Narrowed
from airflow_dagsched.plan.settings import DEFAULTS, Settings


def apply_measurements(
    dataflow: Dataflow,
    cluster: Cluster,
    state: State,
    *,
    connection: str | None = None,
    settings: Settings = DEFAULTS,
) -> tuple[Dataflow, Cluster]:
    """Both with what ``state`` knows of them; of ``connection``, or of the only one it knows."""
    most = limit_memory_mb(cluster, settings)
    capped = replace(state, measured={name: _cap_memory(seen, most) for name, seen in state.measured.items()})
    known = apply_connection(cluster, state, connection)
    return apply_measured(dataflow, capped), expect_warm(known) if settings.warm else known


def list_measured(state: State) -> frozenset[str]:
    """The steps whose runtimes are measured; zero means not known, as of a declared one."""
    return frozenset(name for name, seen in state.measured.items() if seen.runtime_s)


def list_narrowed(dataflow: Dataflow, state: State) -> tuple[Narrowed, ...]:
    """The datasets of ``dataflow`` kept without some of their columns or rows, in the order of their names."""
    readers: dict[tuple[str, str], set[str]] = {}
    for channel in dataflow.channels:
        readers.setdefault((channel.src, channel.output), set()).add(channel.dst)
    found = (_find_narrowed(dataset, readers[dataset], state) for dataset in sorted(readers))
    return tuple(one for one in found if one is not None)


def _find_narrowed(dataset: tuple[str, str], readers: set[str], state: State) -> Narrowed | None:
    src, output = dataset
    seen = state.measured.get(src, Measured()).outputs.get(output)
    if seen is None or seen.columns is None:
        return None
    out, dst = seen.columns, tuple(sort_naturally(readers))
    return Narrowed(
        src=src, output=output, dst=dst, columns=out.columns, kept=out.kept, share=out.share, measured=out.measured,
        where=out.where,
    )  # fmt: skip


def limit_memory_mb(cluster: Cluster, settings: Settings) -> int:
    """MiB that an instance alone on the largest worker can have beside the padding."""
    largest = max((worker.memory_mb for worker in cluster.workers), default=0)
    return math.floor(compute_usable_memory(largest, settings.padding_min_mb, settings.padding_fraction))


def _cap_memory(seen: Measured, most: int) -> Measured:
    return seen if seen.memory_mb is None else replace(seen, memory_mb=min(seen.memory_mb, most))
