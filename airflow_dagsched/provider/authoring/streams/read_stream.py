"""From the steps of a stream to its sources and queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_dagsched.launch.streams.manifest import QuerySpec, SourceSpec
from airflow_dagsched.provider.authoring.streams.steps import SinkStep, SourceStep
from airflow_dagsched.provider.spec.stream_spec import StreamSpec

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_dagsched.provider.authoring.steps import StepMirror
    from airflow_dagsched.provider.spec.dataflow_graph import DataflowGraph
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
PARTITIONS = 200
"""Of state, as Spark shares it out by itself."""


def read_stream(flow: DataflowSpec, mirrors: Mapping[str, StepMirror], dag: DAG) -> StreamSpec:
    """What is read and written by ``flow``, whose steps ``mirrors`` stand for.

    Raises :class:`InvalidInput` for what cannot be a stream.
    """
    assert flow.streaming is not None
    warn_of_idle_words(mirrors)
    ends = tuple(_build_query(name, mirrors, flow) for name in list_ends(mirrors))
    return StreamSpec(flow.streaming, tuple(_list_sources(mirrors)), ends)


def list_ends(mirrors: Mapping[str, StepMirror]) -> tuple[str, ...]:
    """Steps that rows leave the stream by: each is a query."""
    return tuple(
        name for name, each in mirrors.items() if each.declared.writes is not None or isinstance(each, SinkStep)
    )


def _list_sources(mirrors: Mapping[str, StepMirror]) -> Iterator[SourceSpec]:
    return (each.make_spec(name) for name, each in mirrors.items() if isinstance(each, SourceStep))


def list_above(name: str, graph: DataflowGraph) -> tuple[str, ...]:
    """A step and all whose rows it gets, directly or not, in the author's order."""
    found, queue = {name}, [name]
    while queue:
        above = {output.step for output in graph.inputs[queue.pop()]} - found
        found |= above
        queue += above
    return tuple(each for each in graph.inputs if each in found)


def _build_query(name: str, mirrors: Mapping[str, StepMirror], flow: DataflowSpec) -> QuerySpec:
    steps = [mirrors[each].declared for each in list_above(name, flow.graph)]
    stateful = [step for step in steps if step.stateful]
    # Spark has one number of partitions for all state of a query.
    said = [step.parallelism for step in stateful if step.parallelism is not None]
    return QuerySpec(
        name,
        mirrors[name].declared.writes,
        max(said, default=int(flow.conf.get(SHUFFLE_PARTITIONS, PARTITIONS))),
        len(stateful),
        tuple(sorted({state for step in stateful for state in step.carries})),
    )


def warn_of_idle_words(mirrors: Mapping[str, StepMirror]) -> None:
    """Say what has no effect, and is no mistake: the steps may have come from a dataflow that ends."""
    for mirror in mirrors.values():
        if mirror.declared.parallelism is not None and not mirror.declared.stateful:
            where = f"DAG {mirror.dag.dag_id!r}, step {mirror.task_id!r}"
            rule = "counts partitions of state, and the step keeps none: it is ignored without stateful=True"
            warnings.warn(f"{where}: parallelism: {rule}", stacklevel=1)
