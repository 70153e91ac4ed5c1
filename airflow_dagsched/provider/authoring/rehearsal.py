"""``flow.run_local``: the steps of a dataflow in this process, for unit tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.provider.spec.call_arguments import find_source
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.submission.specs import Submit, build_parts

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_dagsched.launch.streams.rehearsal import Rehearsal
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec
    from airflow_dagsched.provider.spec.stream_spec import StreamSpec


def run_local(
    flow: DataflowSpec, dag: DAG, interval: Interval | None, inputs: Mapping[str, Any], spark: Any
) -> dict[str, Any]:
    """See :meth:`SparkDataflow.run_local`."""
    # Late: a parse never runs steps, and this leads to PySpark.
    from airflow_dagsched.local import run_local as run

    facts = _make_facts(dag, interval or Interval("local"))
    roots = (Path(dag.fileloc).parent,)
    parts = build_parts(Submit(flow, flow.graph.sort_steps(), facts, _make_renderer(dag, facts, inputs), roots))
    # Of a step's id: instead of running it. The others are ordinary tasks, whose values the renderer looks up.
    rows = {name: value for name, value in inputs.items() if name in flow.steps}
    stream = None if flow.stream is None else _rehearse_stream(flow.name, flow.stream, rows)
    return run(
        parts.specs,
        parts.calls,
        interval=facts.interval,
        context=facts.context,
        inputs={name: value for name, value in rows.items() if stream is None or name not in stream.rows},
        repeats=parts.repeats,
        stream=stream,
        spark=spark,
    )


def _rehearse_stream(name: str, stream: StreamSpec, rows: Mapping[str, Any]) -> Rehearsal:
    """What functions of a stream are given; raises ``KeyError`` for a source without rows."""
    from airflow_dagsched.launch.streams.rehearsal import Rehearsal

    for source in stream.sources:
        if source.name not in rows:
            raise KeyError(f"source {source.name!r} is not read here: give its rows in inputs={{{source.name!r}: ...}}")
    sinks = [query.step for query in stream.queries if query.writes is None]
    raw = {source.name: rows[source.name] for source in stream.sources}
    keys = {sink: f"local/{name}/{sink}" for sink in sinks}
    return Rehearsal(stream.sources, raw, keys, stream.settings.max_ahead_s)


def _make_facts(dag: DAG, interval: Interval) -> RunFacts:
    start = interval.start
    dates = {"ds": f"{start:%Y-%m-%d}", "ts": start.isoformat(), "logical_date": start.isoformat()} if start else {}
    params = dict(dag.params.items())
    context = {**dates, "run_id": "local", "dag_id": dag.dag_id, "params": params}
    return RunFacts(
        dag_id=dag.dag_id, run_id="local", try_id=TryId(try_number=1), began=0.0, conf={},
        interval=interval, context=context, states={}, skipped={}, feeds={},
    )  # fmt: skip


def _make_renderer(dag: DAG, facts: RunFacts, inputs: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Templates with the interval's values; return values of ordinary tasks come from ``inputs``."""

    def render(value: Any) -> Any:
        found = find_source(value)
        if found is not None:
            task_id = found[0].task_id
            if task_id not in inputs:
                raise KeyError(
                    f"a step takes the return value of task {task_id!r}: give it in inputs={{{task_id!r}: ...}}"
                )
            return inputs[task_id]
        if isinstance(value, str):
            return dag.get_template_env().from_string(value).render(**facts.context)
        return value

    return render
