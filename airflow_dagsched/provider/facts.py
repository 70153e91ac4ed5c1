"""What a launch task knows when it starts: asked of Airflow once, then a frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk.bases.skipmixin import XCOM_SKIPMIXIN_FOLLOWED, XCOM_SKIPMIXIN_KEY, XCOM_SKIPMIXIN_SKIPPED
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from msgspec import Struct

from airflow_dagsched.launch.feed import FEED_KEY, Feed
from airflow_dagsched.launch.interval import Interval
from airflow_dagsched.launch.wire import decode

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.launch import LaunchOperator

PLAIN_CONTEXT = ("ds", "ds_nodash", "ts", "ts_nodash", "logical_date", "run_id", "partition_key", "partition_date")


class RunFacts(Struct, frozen=True):
    """One run, one try."""

    dag_id: str
    run_id: str
    try_number: int
    clear_number: int
    run_started: str
    conf: Mapping[str, Any]
    interval: Interval
    context: Mapping[str, Any]
    """JSON values a step may ask for; names the run has no value for are absent."""
    states: Mapping[str, str]
    """Airflow's state of ordinary tasks and mirrors."""
    skipped: Mapping[str, str]
    """Mirror's task id -> the branch or short circuit that skipped it."""
    feeds: Mapping[str, Feed]
    """Feeds of the launch tasks of other groups."""


def gather(launch: LaunchOperator, context: Context) -> RunFacts:
    """Ask Airflow for all that ``launch`` has to know."""
    ti, dag_run = context["ti"], context["dag_run"]
    flow, graph = launch.flow, launch.graph
    mirrors = [step.task_id for step in flow.steps.values()]
    outside = sorted({task_id for ids in graph.outside.values() for task_id in ids})
    answer = RuntimeTaskInstance.get_task_states(dag_id=ti.dag_id, task_ids=[*mirrors, *outside], run_ids=[ti.run_id])
    states = {task_id: str(state) for task_id, state in answer.get(ti.run_id, {}).items() if state}
    return RunFacts(
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        try_number=ti.try_number,
        clear_number=dag_run.clear_number or 0,
        run_started=run_started(dag_run),
        conf=dag_run.conf or {},
        interval=interval_of(dag_run),
        context=json_context(context),
        states=states,
        skipped=_skipped(launch, ti, states),
        feeds=_feeds(launch, ti),
    )


def run_started(dag_run: Any) -> str:
    """When the run began, or began again after a clear; the same text in a worker and in the triggerer.

    (The triggerer is not told how often the run was cleared.)
    """
    return str(pendulum.instance(dag_run.start_date).in_timezone("UTC").isoformat()) if dag_run.start_date else ""


def interval_of(dag_run: Any) -> Interval:
    """The data interval, else the partition, else nothing but the run's id as key."""
    if dag_run.data_interval_start is not None:
        return _between(dag_run.data_interval_start, dag_run.data_interval_end)
    if dag_run.partition_date is not None:
        return Interval(str(dag_run.partition_key), dag_run.partition_date)
    if dag_run.partition_key:
        return Interval(dag_run.partition_key, _date_in(dag_run.partition_key))
    if dag_run.logical_date is not None:
        return _between(dag_run.logical_date, dag_run.logical_date)
    return Interval(dag_run.run_id)


def _between(start: datetime, end: datetime | None) -> Interval:
    moment = pendulum.instance(start).in_timezone("UTC")
    until = pendulum.instance(end).in_timezone("UTC") if end else moment
    same = moment == until
    return Interval(moment.isoformat() if same else f"{moment.isoformat()}--{until.isoformat()}", start, end)


def _date_in(key: str) -> datetime | None:
    try:
        found = pendulum.parse(key, strict=True)
    except ValueError:
        return None
    return found if isinstance(found, datetime) else None


def json_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """The values of ``PLAIN_CONTEXT`` the run has, dates as ISO 8601, plus ``params`` and ``dag_id``."""
    dag_run = context["dag_run"]
    found = {name: context.get(name, getattr(dag_run, name, None)) for name in PLAIN_CONTEXT}
    plain = {name: _json(value) for name, value in found.items() if value is not None}
    return {**plain, "params": dict(context.get("params") or {}), "dag_id": dag_run.dag_id}


def _json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, (date, datetime)) else value


def _skipped(launch: LaunchOperator, ti: Any, states: Mapping[str, str]) -> dict[str, str]:
    """Mirrors a branch or short circuit decided to skip, by what it left in XCom (as Airflow itself reads it)."""
    found: dict[str, str] = {}
    for task_id in launch.skippers:
        decision = ti.xcom_pull(task_ids=task_id, key=XCOM_SKIPMIXIN_KEY)
        if not decision:
            continue
        for step in launch.flow.steps.values():
            followed = decision.get(XCOM_SKIPMIXIN_FOLLOWED)
            if followed is not None:
                if task_id in step.upstream_task_ids and step.task_id not in followed:
                    found[step.task_id] = task_id
            elif _names_task(decision.get(XCOM_SKIPMIXIN_SKIPPED, ()), step.task_id):
                found[step.task_id] = task_id
    return found


def _names_task(skipped: Any, task_id: str) -> bool:
    return any(task_id == (item if isinstance(item, str) else item[0]) for item in skipped)


def _feeds(launch: LaunchOperator, ti: Any) -> dict[str, Feed]:
    found = {}
    for other in launch.other_launches():
        raw = ti.xcom_pull(task_ids=other, key=FEED_KEY)
        if raw:
            found[other] = decode(Feed, raw)
    return found
