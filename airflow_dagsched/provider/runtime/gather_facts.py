"""What a launch task knows when it starts: asked of Airflow once, then a frozen value."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk.bases.skipmixin import XCOM_SKIPMIXIN_FOLLOWED, XCOM_SKIPMIXIN_KEY, XCOM_SKIPMIXIN_SKIPPED
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom

from airflow_dagsched.launch.history.forecast import find_upstream_groups
from airflow_dagsched.launch.protocol.clocks import compute_begin
from airflow_dagsched.launch.protocol.feed import FEED_KEY, Feed
from airflow_dagsched.launch.protocol.identity import TryId, read_creation_time
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.push_limit import read_feed
from airflow_dagsched.provider.following.incarnation import INCARNATION_KEY, determine_incarnation
from airflow_dagsched.provider.following.patience import ask_patiently
from airflow_dagsched.provider.following.server_clock import ask_server_time
from airflow_dagsched.provider.spec.run_facts import RunFacts

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec

log = logging.getLogger(__name__)

PLAIN_CONTEXT = ("ds", "ds_nodash", "ts", "ts_nodash", "logical_date", "run_id", "partition_key", "partition_date")


def gather_run_facts(launch: LaunchSpec, context: Context) -> RunFacts:
    """Ask Airflow for all that ``launch`` has to know; again and again while it does not answer."""
    return ask_patiently(lambda: _ask_airflow(launch, context))


def _ask_airflow(launch: LaunchSpec, context: Context) -> RunFacts:
    ti, dag_run = context["ti"], context["dag_run"]
    mirrors = [step.task_id for step in launch.flow.steps.values()]
    outside = sorted({task_id for ids in launch.flow.graph.outside.values() for task_id in ids})
    answer = RuntimeTaskInstance.get_task_states(
        dag_id=ti.dag_id, task_ids=[*mirrors, *outside, *launch.launches], run_ids=[ti.run_id]
    )
    states = {task_id: str(state) for task_id, state in answer.get(ti.run_id, {}).items() if state}
    try_id = _identify_try(launch, ti, dag_run)
    return RunFacts(
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        try_id=try_id,
        began=_estimate_beginning(ti, dag_run),
        conf=dag_run.conf or {},
        interval=derive_interval(dag_run),
        context=collect_json_context(context),
        states=states,
        skipped=_find_skipped(launch, ti, states),
        feeds=select_feeds(_read_feeds(launch, ti), launch, try_id.round),
        backfill=dag_run.run_type == "backfill",
    )


def _identify_try(launch: LaunchSpec, ti: Any, dag_run: Any) -> TryId:
    # A mirror's: an XCom of a launch task is wiped by the worker that starts its next try.
    first = next(iter(launch.flow.steps.values())).task_id
    where = {"key": INCARNATION_KEY, "dag_id": ti.dag_id, "task_id": first, "run_id": ti.run_id}
    known = determine_incarnation(
        dag_run.start_date, lambda: XCom.get_one(**where), lambda began: XCom.set(value=began, **where)
    )
    return TryId(known, dag_run.clear_number or 0, ti.try_number)


def _estimate_beginning(ti: Any, dag_run: Any) -> float:
    started = dag_run.start_date
    return compute_begin(
        read_creation_time(ti.id), started.timestamp() if started is not None else None, ask_server_time()
    )


def derive_interval(dag_run: Any) -> Interval:
    """The data interval, else the partition, else nothing but the run's id as key."""
    if dag_run.data_interval_start is not None:
        return _make_interval(dag_run.data_interval_start, dag_run.data_interval_end)
    # Without a data interval the partition says which rows are meant; a manual run may have neither.
    if dag_run.partition_date is not None:
        return Interval(str(dag_run.partition_key), dag_run.partition_date)
    if dag_run.partition_key:
        return Interval(dag_run.partition_key, _parse_date(dag_run.partition_key))
    if dag_run.logical_date is not None:
        return _make_interval(dag_run.logical_date, dag_run.logical_date)
    return Interval(dag_run.run_id)


def _make_interval(start: datetime, end: datetime | None) -> Interval:
    # In UTC: the key names commits, and the same moment must not have two keys.
    moment = pendulum.instance(start).in_timezone("UTC")
    until = pendulum.instance(end).in_timezone("UTC") if end else moment
    same = moment == until  # a manual run's interval is one moment
    return Interval(moment.isoformat() if same else f"{moment.isoformat()}--{until.isoformat()}", start, end)


def _parse_date(key: str) -> datetime | None:
    try:
        found = pendulum.parse(key, strict=True)
    except ValueError:
        return None
    return found if isinstance(found, datetime) else None


def collect_json_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """The values of ``PLAIN_CONTEXT`` the run has, dates as ISO 8601, plus ``params`` and ``dag_id``."""
    dag_run = context["dag_run"]
    found = {name: context.get(name, getattr(dag_run, name, None)) for name in PLAIN_CONTEXT}
    plain = {name: _convert_to_json(value) for name, value in found.items() if value is not None}
    return {**plain, "params": dict(context.get("params") or {}), "dag_id": dag_run.dag_id}


def _convert_to_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, (date, datetime)) else value


def _find_skipped(launch: LaunchSpec, ti: Any, states: Mapping[str, str]) -> dict[str, str]:
    """Mirrors a branch or short circuit decided to skip, by what it left in XCom (as Airflow itself reads it)."""
    found: dict[str, str] = {}
    for task_id in launch.skippers:
        decision = ti.xcom_pull(task_ids=task_id, key=XCOM_SKIPMIXIN_KEY)
        if not isinstance(decision, Mapping):
            continue
        for name, step in launch.flow.steps.items():
            followed = decision.get(XCOM_SKIPMIXIN_FOLLOWED)
            # A branch names what it follows among the tasks directly below it; a short circuit what it skips.
            if isinstance(followed, (list, tuple)):
                if task_id in launch.flow.graph.outside[name] and step.task_id not in followed:
                    found[step.task_id] = task_id
            elif _is_named(decision.get(XCOM_SKIPMIXIN_SKIPPED), step.task_id):
                found[step.task_id] = task_id
    return found


def _is_named(skipped: Any, task_id: str) -> bool:
    listed = skipped if isinstance(skipped, (list, tuple)) else ()
    return any(task_id == item or (isinstance(item, (list, tuple)) and task_id in item[:1]) for item in listed)


def _read_feeds(launch: LaunchSpec, ti: Any) -> dict[str, Feed]:
    found = {}
    for other in (task_id for task_id in launch.launches if task_id != launch.task_id):
        raw = ti.xcom_pull(task_ids=other, key=FEED_KEY)
        # Another version of ours may have written it: then its steps' commits say what is done.
        feed = read_feed(raw)
        if feed is not None:
            found[other] = feed
        elif raw is not None:
            log.warning("the feed of %s can't be read: what its steps left is looked up among the commits", other)
    return found


def select_feeds(feeds: Mapping[str, Feed], launch: LaunchSpec, this_round: str) -> dict[str, Feed]:
    """Those that say how far the run is: of this round, or of launch tasks that ``launch`` waits for.

    A clear leaves the feed of a launch task where it is until that begins again. Of one above, which is over, it is the
    last word all the same: it need not have been cleared. Of any other one it tells of what is to be done anew.
    """
    above = find_upstream_groups(launch.group.id, launch.launches.values())
    return {
        task_id: feed
        for task_id, feed in feeds.items()
        if feed.try_id.round == this_round or launch.launches[task_id].id in above
    }
