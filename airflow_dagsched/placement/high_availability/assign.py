"""From the file formats to the policy and back: dataflow, cluster and state in, ``Assigned`` out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.cluster import Worker as Host
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import Assignment, State
from airflow_dagsched.model.state import Lag as Reported
from airflow_dagsched.placement.high_availability.policy import place
from airflow_dagsched.placement.high_availability.settings import DEFAULTS, Settings
from airflow_dagsched.placement.high_availability.values import RUNNING, Instance, Lag, Worker
from airflow_dagsched.placement.high_availability.values import Movement as Moved
from airflow_dagsched.plan.values import Movement

Unit = Literal["rows", "bytes", "seconds"]
UNITS: tuple[Unit, ...] = ("rows", "bytes", "seconds")
LARGEST_LAG = 1e15
"""Of the plan's format."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The fields ``assignment``, ``movements`` and ``follow_up`` of the plan."""

    assignment: Assignment
    movements: tuple[Movement, ...] = ()
    follow_up: bool = False


def assign(dataflow: Dataflow, cluster: Cluster, state: State, settings: Settings = DEFAULTS) -> Assigned:
    """Where each instance ``step/index`` of a valid dataflow is active, on standby and warming up.

    A worker's capacity is all its cores, not those free just now: the running application itself takes of them.
    Lags of workers and instances that no longer exist are left out. Raises ``DoesNotFit`` where no worker with
    cores is left, or none of those a step is pinned to; ``InvalidInput`` where the strategy knows no pinned steps or
    a lag is given twice.
    """
    unit = lag_unit(state, settings)
    made = place(
        instances_of(dataflow),
        [_worker(host) for host in cluster.workers if host.cores],
        _lags(state, unit),
        settings,
        previous=state.previous,
        offsets=state.offsets if unit == "rows" else None,
    )
    return Assigned(made.assignment, tuple(_movement(moved) for moved in made.movements), made.follow_up)


def instances_of(dataflow: Dataflow) -> Iterator[Instance]:
    """Every parallel copy of every step."""
    for step in dataflow.steps:
        for index in range(step.parallelism):
            yield Instance(
                id=f"{step.id}/{index}",
                step=step.id,
                stateful=step.stateful,
                weight=step.weight,
                pinned=frozenset(step.pinned),
            )


def lag_unit(state: State, settings: Settings) -> Unit:
    """That of the settings, or the one most lags of the state are given in."""
    if settings.lag_unit != "most":
        return settings.lag_unit
    counts = Counter(unit for lag in state.lags for unit in UNITS if getattr(lag, unit) is not None)
    return max(UNITS, key=counts.__getitem__)


def _worker(host: Host) -> Worker:
    rack = {} if host.rack is None else {"rack": host.rack}
    return Worker(host.id, host.cores, {**host.tags, **rack})


def _lags(state: State, unit: Unit) -> dict[str, dict[str, Lag]]:
    found: dict[str, dict[str, Lag]] = {}
    for at, lag in enumerate(state.lags):
        lags = found.setdefault(lag.instance, {})
        if lag.worker in lags:
            raise InvalidInput("state", f"lags[{at}]", f"the lag of {lag.instance!r} on {lag.worker!r} is given twice")
        lags[lag.worker] = _lag(lag, unit)
    return found


def _lag(lag: Reported, unit: Unit) -> Lag:
    if lag.running:
        return RUNNING
    behind: float | None = getattr(lag, unit)
    return behind


def _movement(moved: Moved) -> Movement:
    return Movement(
        instance=moved.instance,
        from_worker=moved.source,
        to_worker=moved.target,
        lag=None if moved.lag is None else min(moved.lag, LARGEST_LAG),
        reason=moved.reason,
    )
