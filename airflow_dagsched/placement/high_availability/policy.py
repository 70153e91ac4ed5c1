"""The policy: a pure function of instances, workers, lags, settings and the prior assignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace
from msgspec.structs import replace as with_fields

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability import seed
from airflow_dagsched.placement.high_availability.facts import Facts, digest, facts_of
from airflow_dagsched.placement.high_availability.fitted import fitted, refitted
from airflow_dagsched.placement.high_availability.kafka import strategy as kafka
from airflow_dagsched.placement.high_availability.kafka_2020 import strategy as kafka_2020
from airflow_dagsched.placement.high_availability.settings import DEFAULTS, Settings
from airflow_dagsched.placement.high_availability.space import Space
from airflow_dagsched.placement.high_availability.sticky import strategy as sticky
from airflow_dagsched.placement.high_availability.values import Instance, Lags, Movement, Outcome, Worker

STRATEGIES: dict[str, Callable[[Facts], Outcome]] = {
    "sticky": sticky.assign,
    "seed": seed.assign,
    "kafka_2020": kafka_2020.assign,
    "kafka": kafka.assign,
}


def place(
    instances: Iterable[Instance],
    workers: Iterable[Worker],
    lags: Lags,
    settings: Settings = DEFAULTS,
    *,
    previous: Assignment | None = None,
    offsets: Mapping[str, float] | None = None,
    space: Space | None = None,
) -> Outcome:
    """Where every instance is active, on standby and warming up; the same for any order of the arguments.

    ``offsets`` are the rows of an instance's whole state: what a worker without any of it is behind. ``space`` is
    what the workers have room for, its positions in natural order of ids; None: for everything.
    Raises ``InvalidInput`` for ids given twice and for pinned instances where the strategy has no such thing,
    ``DoesNotFit`` where there is no worker, or none of those an instance is pinned to, or no room for all.
    """
    facts = facts_of(instances, workers, lags, settings, previous, offsets, space)
    if settings.strategy != "sticky":
        _refuse_pinned(facts)
    made = _within_room(facts)
    moving = tuple(hand_overs(facts, made.assignment))
    if settings.strategy == "sticky":
        made = replace(made, assignment=_with_moved(facts, made.assignment, moving))
    return replace(made, movements=(*moving, *made.movements))


def _with_moved(facts: Facts, made: Assignment, moving: Iterable[Movement]) -> Assignment:
    """The next round leaves alone what has been handed over, until workers come or go."""
    gone = {facts.instances[at].id for at in facts.moved} | {one.instance for one in moving}
    stateful = [facts.instances[at].id for at in facts.stateful]
    moved = [instance for instance in stateful if instance in gone]
    return with_fields(made, moved=dict.fromkeys(moved, digest(facts.workers))) if moved else made


def _within_room(facts: Facts) -> Outcome:
    try:
        return fitted(facts, STRATEGIES[facts.settings.strategy](facts))
    except DoesNotFit:
        return refitted(facts)


def _refuse_pinned(facts: Facts) -> None:
    """The others reproduce systems that know nothing of the kind."""
    for instance in facts.instances:
        if instance.pinned:
            rule = f"strategy {facts.settings.strategy!r} has no pinned steps, use 'sticky'"
            raise InvalidInput("high_availability", instance.step, rule)


def hand_overs(facts: Facts, assignment: Assignment) -> Iterator[Movement]:
    """The instances that are active on another worker than before."""
    before = facts.previous.active if facts.previous else {}
    for instance in facts.instances:
        source, target = before.get(instance.id), assignment.active[instance.id]
        if source is not None and source != target:
            yield facts.movement(facts.place[instance.id], source, target, "active", "hand over")
