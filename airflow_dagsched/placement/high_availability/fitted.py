"""An assignment within what the workers have room for, whichever strategy made it.

Strategies other than ``sticky`` know no room. Where their actives have a seat each, standbys and then warm-ups follow
as long as there is room. Where they have not, or ``sticky`` left an instance without room: the prior assignment, if
that fits; else a fresh one by round robin, which searches before it gives up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY, prior_of
from airflow_dagsched.placement.high_availability.space import Seat, Seats, Space
from airflow_dagsched.placement.high_availability.values import Movement, Outcome
from airflow_dagsched.placement.round_robin import round_robin
from airflow_dagsched.placement.shares import dominant_share


def fitted(facts: Facts, made: Outcome) -> Outcome:
    """What of ``made`` has room, or another one. Raises ``DoesNotFit`` where no way was found."""
    if facts.space is None or made.seats:
        return made
    active = {facts.place[instance]: facts.seat[worker] for instance, worker in made.assignment.active.items()}
    seats = _seated(facts, facts.space, active)
    if seats is None:
        return refitted(facts)
    copies = _copies(facts, active)
    for held, by_role in ((copies.standby, made.assignment.standby), (copies.warmup, made.assignment.warmup)):
        _keep(copies, held, seats, _pairs(facts, by_role))
    movements = tuple(_with_room(made.movements, copies))
    stuck = bool(movements) and not any(moving.how == "warm up" for moving in movements)
    return _outcome(copies, seats, movements, follow_up=made.follow_up and not stuck)


def refitted(facts: Facts) -> Outcome:
    """The prior assignment if all of it is there and fits, else a fresh one; standbys where there is room.

    A fresh one asks for a follow-up, which may level it.
    """
    assert facts.space is not None
    prior = prior_of(facts)
    kept = _seated(facts, facts.space, prior.active) if len(prior.active) == len(facts.instances) else None
    seats = kept or _dealt(facts, facts.space)
    copies = _copies(facts, dict(seats.active.keys()))
    _keep(
        copies,
        copies.standby,
        seats,
        [(at, worker) for at in facts.stateful for worker in prior.standby.get(at, NOBODY)],
    )
    _keep(copies, copies.standby, seats, _missing(copies, seats))
    return _outcome(copies, seats, follow_up=kept is None)


def _seated(facts: Facts, space: Space, active: Mapping[int, int]) -> Seats | None:
    """All of them, the largest first; None: one has no room."""
    seats = facts.seats()
    whole = [sum(limit[at] for limit in space.limits) for at in range(3)]
    share = {work.number: dominant_share(work, whole) for work, _ in space.works}
    order = sorted(active, key=lambda at: (-share[space.works[at][0].number], at))
    return seats if all(seats.run(instance, active[instance]) for instance in order) else None


def _dealt(facts: Facts, space: Space) -> Seats:
    places = round_robin(space.request)
    worker = {offer: at for at, offers in enumerate(space.offers) for offer in offers}
    seats = facts.seats()
    for instance, (work, index) in enumerate(space.works):
        at = places[work.number][index]
        seats.run_in(instance, worker[at], at)
    return seats


def _copies(facts: Facts, active: Mapping[int, int]) -> Copies:
    copies = Copies(facts)
    for instance, worker in active.items():
        copies.add(copies.active, worker, instance)
    return copies


def _keep(copies: Copies, held: list[set[int]], seats: Seats, pairs: Iterable[Seat]) -> None:
    for instance, worker in pairs:
        if not copies.holds(worker, instance) and seats.keep(instance, worker):
            copies.add(held, worker, instance)


def _pairs(facts: Facts, held: Mapping[str, tuple[str, ...]]) -> Iterator[Seat]:
    return ((facts.place[instance], facts.seat[worker]) for instance, workers in held.items() for worker in workers)


def _missing(copies: Copies, seats: Seats) -> Iterator[Seat]:
    """One standby after another, each where it has room and loads least."""
    facts = copies.facts
    for instance in facts.stateful:
        for _ in range(facts.settings.num_standbys + 1 - len(copies.holders(instance))):
            free = [
                at for at in facts.homes[instance] if not copies.holds(at, instance) and seats.may_keep(instance, at)
            ]
            if free:
                yield instance, copies.least_loaded(free)


def _with_room(movements: Iterable[Movement], copies: Copies) -> Iterator[Movement]:
    """What has no room for its warm-up waits for it."""
    facts = copies.facts
    for moving in movements:
        there = copies.holds(facts.seat[moving.target], facts.place[moving.instance])
        yield moving if there or moving.how != "warm up" else replace(moving, how="no room")


def _outcome(copies: Copies, seats: Seats, movements: tuple[Movement, ...] = (), *, follow_up: bool = False) -> Outcome:
    made: Assignment = copies.assignment()
    return Outcome(made, movements, follow_up, {**seats.active, **seats.copies})
