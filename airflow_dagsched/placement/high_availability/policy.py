"""The policy: a pure function of instances, workers, lags, settings and the prior assignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module

from msgspec.structs import replace
from msgspec.structs import replace as with_fields

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.facts import Facts, digest_workers, gather_facts
from airflow_dagsched.placement.high_availability.settings import DEFAULTS, Settings
from airflow_dagsched.placement.high_availability.space import Space
from airflow_dagsched.placement.high_availability.values import Instance, Lags, Movement, Outcome, Worker
from airflow_dagsched.placement.high_availability.within_capacity import fit_outcome, refit_assignment

Strategy = Callable[[Facts], Outcome]

FOLDER = "airflow_dagsched.placement"
STRATEGIES: Mapping[str, str] = {
    "sticky": f"{FOLDER}.high_availability.sticky.strategy.assign_sticky",
    "seed": f"{FOLDER}.reproductions.seed.assign_seed",
    "kafka_2020": f"{FOLDER}.reproductions.kafka_2020.strategy.assign_kafka_2020",
    "kafka": f"{FOLDER}.reproductions.kafka.strategy.assign_kafka",
}
"""Names and the functions they stand for."""


def load_strategy(name: str) -> Strategy:
    """The function of the setting ``strategy``."""
    # By path, as policies are: the reproductions are made of this folder's facts, so it imports none of them.
    module, _, attribute = STRATEGIES[name].rpartition(".")
    strategy: Strategy = getattr(import_module(module), attribute)
    return strategy


def place_instances(
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
    facts = gather_facts(instances, workers, lags, settings, previous, offsets, space)
    if settings.strategy != "sticky":
        _refuse_pinned(facts)
    outcome = _assign_within_capacity(facts)
    moving = tuple(list_hand_overs(facts, outcome.assignment))
    if settings.strategy == "sticky":
        outcome = replace(outcome, assignment=_record_moved(facts, outcome.assignment, moving))
    # Hand-overs happen now, the others once their copies have caught up.
    return replace(outcome, movements=(*moving, *outcome.movements))


def _record_moved(facts: Facts, assignment: Assignment, movements: Iterable[Movement]) -> Assignment:
    """The next round leaves alone what has been handed over, until workers come or go."""
    gone = {facts.instances[at].id for at in facts.handed_over} | {movement.instance for movement in movements}
    stateful = [facts.instances[at].id for at in facts.stateful]
    moved = [instance for instance in stateful if instance in gone]
    return with_fields(assignment, moved=dict.fromkeys(moved, digest_workers(facts.workers))) if moved else assignment


def _assign_within_capacity(facts: Facts) -> Outcome:
    try:
        return fit_outcome(facts, load_strategy(facts.settings.strategy)(facts))
    # ``sticky`` found no seat for an instance beside the others; a way may be left that starts anew.
    except DoesNotFit:
        return refit_assignment(facts)


def _refuse_pinned(facts: Facts) -> None:
    """The others reproduce systems that know nothing of the kind."""
    for instance in facts.instances:
        if instance.pinned:
            rule = f"strategy {facts.settings.strategy!r} has no pinned steps, use 'sticky'"
            raise InvalidInput("high_availability", instance.step, rule)


def list_hand_overs(facts: Facts, assignment: Assignment) -> Iterator[Movement]:
    """The instances that are active on another worker than before."""
    before = facts.previous.active if facts.previous else {}
    for instance in facts.instances:
        source, target = before.get(instance.id), assignment.active[instance.id]
        # An instance that is new has nothing to hand over.
        if source is not None and source != target:
            yield facts.make_movement(facts.position[instance.id], source, target, "active", "hand over")
