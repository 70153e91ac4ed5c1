"""What a launch task says, as it begins, of all that its run has left; kept in the run's folder for the next one.

It decides nothing, and nothing of it may keep a launch from going on.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.history.forecast import Ahead, Outlook, Run, derive_state, forecast_run
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.model.cluster import make_idle
from airflow_dagsched.model.codec import encode_value, read_file
from airflow_dagsched.provider.clusters.plan_facts import FoundCluster, gather_plan_facts

if TYPE_CHECKING:
    from airflow_dagsched.model.state import State
    from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec
    from airflow_dagsched.provider.spec.run_facts import RunFacts

log = logging.getLogger(__name__)

MOST_STEPS = 1_000
"""Of more it is not foretold: a launch would wait for it."""


def foretell_rest(launch: LaunchSpec, facts: RunFacts, hook: PlannerHook, folder: Path) -> dict[str, Any]:
    """Say what is left of the run whose ``folder`` this is, and return it; empty where there is but one group."""
    if len(launch.launches) < 2 or len(launch.flow.steps) > MOST_STEPS:
        return {}
    try:
        found = _forecast_run(launch, facts, hook, folder / "outlook.json")
    except Exception as error:  # noqa: BLE001 - whatever it is, the group can be launched without
        log.warning("what is left of the run is not foretold: %s: %s", type(error).__name__, error)
        return {}
    for line in found.lines():
        log.info("%s", line)
    return {"groups": list(found.left), "seconds": round(found.left_s, 1), "later_s": round(found.later_s, 1)}


def describe_run(launch: LaunchSpec, facts: RunFacts, hook: PlannerHook) -> tuple[Run, State]:
    """The run, and how far it has come as ``launch`` begins."""
    now, groups = time.time(), tuple(launch.launches.values())
    found = hook.find_cluster(launch.flow.declared_cluster)
    whole = FoundCluster(make_idle(found.cluster), found.origin, "whole")
    planned = _limit_history(
        gather_plan_facts(launch, whole, launch.flow.conn_id, per_step=False, history=hook.history)
    )
    # As sized: a policy's search takes seconds for hundreds of steps, and each forecast plans several times.
    planned = replace(planned, policy=None)
    feeds = {launch.launches[task_id].id: feed for task_id, feed in facts.feeds.items()}
    state = derive_state(launch.group.id, groups, feeds, planned.history, this_round=facts.try_id.round, now=now)
    return Run(planned, groups, facts.try_id.round, now), state


def _forecast_run(launch: LaunchSpec, facts: RunFacts, hook: PlannerHook, file: Path) -> Ahead:
    run, state = describe_run(launch, facts, hook)
    found = forecast_run(run, state, _read_last_outlook(file))
    _keep_outlook(found.outlook, file)
    return found


def _limit_history(facts: Facts) -> Facts:
    """How long an application takes to start is a cluster's: of other connections it says nothing."""
    known, name = facts.history, facts.connection
    ours = {each: seen for each, seen in known.connections.items() if each == name}
    return replace(facts, history=replace(known, connections=ours))


def _read_last_outlook(file: Path) -> Outlook | None:
    """A torn or foreign file is none."""
    try:
        return read_file(Outlook, file) if file.is_file() else None
    except InvalidInput:
        return None


def _keep_outlook(outlook: Outlook, file: Path) -> None:
    """For the next launch of the run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Launches of a run may begin at one moment, so each has a draft of its own, and moves it in one go.
    draft = file.with_suffix(f".{time.monotonic_ns()}.new")
    draft.write_bytes(encode_value(outlook))
    draft.replace(file)
