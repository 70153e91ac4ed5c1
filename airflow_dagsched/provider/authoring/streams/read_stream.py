"""From the steps of a stream to its sources and queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_dagsched.launch.streams.manifest import QuerySpec, SourceSpec
from airflow_dagsched.provider.authoring.streams.refusals import SHUFFLE_PARTITIONS, Look, make_look, refuse_mistakes
from airflow_dagsched.provider.authoring.streams.steps import SourceStep
from airflow_dagsched.provider.spec.stream_spec import StreamSpec
from airflow_dagsched.provider.submission.stream_code import add_code

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_dagsched.provider.authoring.steps import StepMirror
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec

PARTITIONS = 200
"""Of state, as Spark shares it out by itself."""


def read_stream(flow: DataflowSpec, mirrors: Mapping[str, StepMirror], dag: DAG) -> StreamSpec:
    """What is read and written by ``flow``, whose steps ``mirrors`` stand for.

    Raises :class:`InvalidInput` for what cannot be a stream.
    """
    assert flow.streaming is not None
    look = make_look(flow, mirrors, dag)
    refuse_mistakes(look)
    warn_of_idle_words(mirrors)
    queries = tuple(_build_query(name, look) for name in look.ends)
    return add_code(StreamSpec(flow.streaming, tuple(_list_sources(mirrors)), queries), flow, dag.fileloc)


def _list_sources(mirrors: Mapping[str, StepMirror]) -> Iterator[SourceSpec]:
    return (each.make_spec(name) for name, each in mirrors.items() if isinstance(each, SourceStep))


def _build_query(name: str, look: Look) -> QuerySpec:
    steps = [look.flow.steps[each].declared for each in look.above[name]]
    stateful = [step for step in steps if step.stateful]
    # Spark has one number of partitions for all state of a query.
    said = [step.parallelism for step in stateful if step.parallelism is not None]
    return QuerySpec(
        name,
        look.flow.steps[name].declared.writes,
        max(said, default=int(look.flow.conf.get(SHUFFLE_PARTITIONS, PARTITIONS))),
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
