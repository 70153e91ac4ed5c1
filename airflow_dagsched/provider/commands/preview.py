"""What a run of a certain date would leave out, looked at without that run: no task has run, nothing is called.

What can't be said without one (values of ordinary tasks, rows of earlier steps) is not looked at: nothing is left out
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_dagsched.launch.planning.facts import Facts, add_inputs
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.provider.runtime.gather_facts import derive_interval
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.submission.input_pruning import Pruning, prune_inputs
from airflow_dagsched.provider.submission.specs import Submit, describe_parts

if TYPE_CHECKING:
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow
    from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
    from airflow_dagsched.provider.wiring.launch import LaunchOperator


def add_run_inputs(
    facts: Facts, flow: SparkDataflow, date: datetime, hook: PlannerHook, conf: Mapping[str, Any]
) -> Facts:
    """The facts with what a run of ``date`` with that ``conf`` leaves out, as its launches find it, group by group."""
    interval = find_interval(flow.dag, date)
    found = [_look(launch, interval, hook, conf) for launch in flow.launches()]
    groups = [launch.group.steps for launch in flow.launches()]
    return _join_inputs(facts, list(zip(groups, found, strict=True)))


def find_interval(dag: Any, date: datetime) -> Interval:
    """The interval of the scheduled run of that logical date; of a DAG without a schedule that moment."""
    from airflow.models.dag import infer_automated_data_interval
    from airflow.serialization.encoders import coerce_to_core_timetable
    from airflow.timetables.base import DataInterval

    moment = DataInterval.exact(date)  # type: ignore[arg-type]
    with suppress(ValueError):  # a timetable of which one cannot tell: its runs have no other interval
        moment = infer_automated_data_interval(coerce_to_core_timetable(dag.timetable), date)
    return derive_interval(SimpleNamespace(data_interval_start=moment.start, data_interval_end=moment.end))


def _look(launch: LaunchOperator, interval: Interval, hook: PlannerHook, conf: Mapping[str, Any]) -> Pruning:
    context = _make_context(launch, interval, conf)
    facts = RunFacts(
        dag_id=launch.flow.dag_id,
        run_id="",
        try_id=TryId(),
        began=0.0,
        conf=dict(conf),
        interval=interval,
        context={},
        states={},
        skipped={},
        feeds={},
    )
    inside = set(launch.group.steps)
    targets = tuple(name for name in launch.flow.graph.sort_steps() if name in inside)
    submit = Submit(launch.flow, targets, facts, render=_make_render(launch, context), roots=())
    return prune_inputs(submit, describe_parts(submit), hook.master, hook.listing)


def _make_context(launch: LaunchOperator, interval: Interval, conf: Mapping[str, Any]) -> dict[str, Any]:
    start, end = interval.start, interval.end
    assert start is not None  # it is a date's
    return {
        "dag": launch.dag, "params": {**launch.dag.params.dump(), **conf}, "dag_run": SimpleNamespace(conf=conf),
        "logical_date": start,
        "data_interval_start": start, "data_interval_end": end,
        "ds": f"{start:%Y-%m-%d}", "ds_nodash": f"{start:%Y%m%d}", "ts": start.isoformat(),
    }  # fmt: skip


def _make_render(launch: LaunchOperator, context: dict[str, Any]) -> Callable[[Any], Any]:
    env = launch.get_template_env()
    return lambda value: launch.render_template(value, context, env)  # type: ignore[arg-type]


def _join_inputs(facts: Facts, found: Sequence[tuple[Iterable[str], Pruning]]) -> Facts:
    """Each group's steps as its own look has them."""
    # Of the steps of other groups a look knows nothing.
    steps = {step.id: step for names, one in found for step in one.dataflow.steps if step.id in set(names)}
    known = (
        replace(one, sources=seen.sources, works_without_input=seen.works_without_input)
        for one in facts.dataflow.steps
        for seen in (steps.get(one.id, one),)
    )
    dataflow = replace(facts.dataflow, steps=tuple(known))
    asked = [one.asked for _, one in found]
    pruning = replace(
        asked[0],
        queries={key: value for one in asked for key, value in one.queries.items()},
        empty_if={key: value for one in asked for key, value in one.empty_if.items()},
        idle={key: value for one in asked for key, value in one.idle.items()},
        only_rows=frozenset().union(*(one.only_rows for one in asked)),
    )
    selections = {key: value for _, one in found for key, value in one.selections.items()}
    return add_inputs(facts, dataflow, pruning, selections)
