"""From the state file to the strategies, and from what they made to the plan's fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal

from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.state import Assignment, Movement, State
from airflow_dagsched.model.state import Lag as ReportedLag
from airflow_dagsched.placement.high_availability.policy import place_instances
from airflow_dagsched.placement.high_availability.settings import DEFAULTS, Settings
from airflow_dagsched.placement.high_availability.space import Space
from airflow_dagsched.placement.high_availability.values import RUNNING, Instance, Lag, Outcome, Worker
from airflow_dagsched.placement.high_availability.values import Movement as PlannedMovement
from airflow_dagsched.placement.values import AssignmentPlan

Unit = Literal["rows", "bytes", "seconds"]
UNITS: tuple[Unit, ...] = ("rows", "bytes", "seconds")
LARGEST_LAG = 1e15
"""The largest lag that the plan's format holds."""


def assign_instances(
    instances: Sequence[Instance],
    workers: Sequence[Worker],
    state: State,
    settings: Settings = DEFAULTS,
    space: Space | None = None,
) -> Outcome:
    """Where each instance ``step/index`` is active, on standby and warming up; and the offer of each copy in ``space``.

    Lags of workers and instances that no longer exist are left out. Raises ``DoesNotFit`` where there is no worker,
    none of those a step is pinned to, or no room; ``InvalidInput`` where the strategy knows no pinned steps or a lag
    is given twice.
    """
    # A state file outlives steps: lags of those that are gone must not decide the unit.
    known = _select_known(state, {instance.id for instance in instances})
    unit = choose_lag_unit(known, settings)
    return place_instances(
        instances,
        workers,
        _collect_lags(known, unit),
        settings,
        previous=known.previous,
        # Offsets are rows: beside lags in bytes or seconds they would be measured against something else.
        offsets=known.offsets if unit == "rows" else None,
        space=space,
    )


def convert_outcome(outcome: Outcome) -> AssignmentPlan:
    """The plan's fields, where a movement's reason is a sentence."""
    return AssignmentPlan(outcome.assignment, tuple(map(_convert_movement, outcome.movements)), outcome.follow_up)


def _select_known(state: State, ids: Collection[str]) -> State:
    """What the state knows of these instances; they had no prior assignment if none of them had a place."""
    before = state.previous or Assignment()
    parts = [{at: held for at, held in part.items() if at in ids} for part in (before.standby, before.warmup)]
    active, moved = ({at: worker for at, worker in part.items() if at in ids} for part in (before.active, before.moved))
    previous = Assignment(active=active, standby=parts[0], warmup=parts[1], moved=moved) if active else None
    return replace(state, lags=tuple(lag for lag in state.lags if lag.instance in ids), previous=previous)


def choose_lag_unit(state: State, settings: Settings) -> Unit:
    """That of the settings, or the one most lags of the state are given in."""
    if settings.lag_unit != "most":
        return settings.lag_unit
    counts = Counter(unit for lag in state.lags for unit in UNITS if getattr(lag, unit) is not None)
    # ``max`` keeps the first of equals: rows where there is nothing to count.
    return max(UNITS, key=counts.__getitem__)


def _collect_lags(state: State, unit: Unit) -> dict[str, dict[str, Lag]]:
    lags_by_instance: dict[str, dict[str, Lag]] = {}
    for at, lag in enumerate(state.lags):
        lags = lags_by_instance.setdefault(lag.instance, {})
        if lag.worker in lags:
            raise InvalidInput("state", f"lags[{at}]", f"the lag of {lag.instance!r} on {lag.worker!r} is given twice")
        lags[lag.worker] = _read_lag(lag, unit)
    return lags_by_instance


def _read_lag(lag: ReportedLag, unit: Unit) -> Lag:
    if lag.running:
        return RUNNING
    behind: float | None = getattr(lag, unit)
    return behind


def _convert_movement(moved: PlannedMovement) -> Movement:
    return Movement(
        instance=moved.instance,
        from_worker=moved.source,
        to_worker=moved.target,
        # A number above the schema's would make the plan one that cannot be read again.
        lag=None if moved.lag is None else min(moved.lag, LARGEST_LAG),
        reason=moved.reason,
    )
