"""From the state file to the strategies, and from what they made to the plan's fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.state import Assignment, State
from airflow_dagsched.model.state import Lag as Reported
from airflow_dagsched.placement.high_availability.policy import place
from airflow_dagsched.placement.high_availability.settings import DEFAULTS, Settings
from airflow_dagsched.placement.high_availability.space import Seat, Space
from airflow_dagsched.placement.high_availability.values import RUNNING, Instance, Lag, Worker
from airflow_dagsched.placement.high_availability.values import Movement as Moved
from airflow_dagsched.placement.values import Assigned
from airflow_dagsched.plan.values import Movement

Unit = Literal["rows", "bytes", "seconds"]
UNITS: tuple[Unit, ...] = ("rows", "bytes", "seconds")
LARGEST_LAG = 1e15
"""Of the plan's format."""


def assign(
    instances: Sequence[Instance],
    workers: Sequence[Worker],
    state: State,
    settings: Settings = DEFAULTS,
    space: Space | None = None,
) -> tuple[Assigned, Mapping[Seat, int]]:
    """Where each instance ``step/index`` is active, on standby and warming up; and the offer of each copy in ``space``.

    Lags of workers and instances that no longer exist are left out. Raises ``DoesNotFit`` where there is no worker,
    none of those a step is pinned to, or no room; ``InvalidInput`` where the strategy knows no pinned steps or a lag
    is given twice.
    """
    known = _part(state, {instance.id for instance in instances})
    unit = lag_unit(known, settings)
    made = place(
        instances,
        workers,
        _lags(known, unit),
        settings,
        previous=known.previous,
        offsets=known.offsets if unit == "rows" else None,
        space=space,
    )
    return Assigned(made.assignment, tuple(_movement(moved) for moved in made.movements), made.follow_up), made.seats


def _part(state: State, ids: Collection[str]) -> State:
    """What the state knows of these instances; they had no prior assignment if none of them had a place."""
    before = state.previous or Assignment()
    parts = [{at: held for at, held in part.items() if at in ids} for part in (before.standby, before.warmup)]
    active, moved = ({at: one for at, one in part.items() if at in ids} for part in (before.active, before.moved))
    previous = Assignment(active=active, standby=parts[0], warmup=parts[1], moved=moved) if active else None
    return replace(state, lags=tuple(lag for lag in state.lags if lag.instance in ids), previous=previous)


def lag_unit(state: State, settings: Settings) -> Unit:
    """That of the settings, or the one most lags of the state are given in."""
    if settings.lag_unit != "most":
        return settings.lag_unit
    counts = Counter(unit for lag in state.lags for unit in UNITS if getattr(lag, unit) is not None)
    return max(UNITS, key=counts.__getitem__)


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
