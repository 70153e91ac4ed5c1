"""An assignment within what the workers have room for, whichever strategy made it.

Strategies other than ``sticky`` know no room. Where their actives have a seat each, standbys and then warm-ups follow
as long as there is room. Where they have not, or ``sticky`` left an instance without room: the prior assignment, if
that fits; else a fresh one by round robin, which searches before it gives up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY, read_prior
from airflow_dagsched.placement.high_availability.space import Seat, Seats, Space
from airflow_dagsched.placement.high_availability.values import Movement, Outcome
from airflow_dagsched.placement.policies.round_robin import place_round_robin
from airflow_dagsched.placement.shares import compute_dominant_share


def fit_outcome(facts: Facts, outcome: Outcome) -> Outcome:
    """What of ``outcome`` has room, or another one. Raises ``DoesNotFit`` where no way was found."""
    # ``sticky`` seats its copies itself.
    if facts.space is None or outcome.seats:
        return outcome
    active = {
        facts.position[instance]: facts.worker_at[worker] for instance, worker in outcome.assignment.active.items()
    }
    seats = _take_seats(facts, facts.space, active)
    if seats is None:
        return refit_assignment(facts)
    copies = Copies.of(facts, active)
    for held, by_role in ((copies.standby, outcome.assignment.standby), (copies.warmup, outcome.assignment.warmup)):
        _add_copies(copies, held, seats, _list_pairs(facts, by_role))
    movements = tuple(_limit_movements(outcome.movements, copies))
    # Nothing is catching up, so the next look would find the same: asking for one would go on for ever.
    stuck = bool(movements) and not any(moving.how == "warm up" for moving in movements)
    return _make_outcome(copies, seats, movements, follow_up=outcome.follow_up and not stuck)


def refit_assignment(facts: Facts) -> Outcome:
    """The prior assignment if all of it is there and fits, else a fresh one; standbys where there is room.

    A fresh one asks for a follow-up, which may level it.
    """
    assert facts.space is not None
    prior = read_prior(facts)
    kept = _take_seats(facts, facts.space, prior.active) if len(prior.active) == len(facts.instances) else None
    seats = kept or _deal_seats(facts, facts.space)
    copies = Copies.of(facts, dict(seats.active.keys()))
    # What has been pinned since then may not stay where it is.
    before = [
        (at, worker) for at in facts.stateful for worker in prior.standby.get(at, NOBODY) if worker in facts.allowed[at]
    ]
    _add_copies(copies, copies.standby, seats, before)
    _add_copies(copies, copies.standby, seats, _find_missing(copies, seats))
    return _make_outcome(copies, seats, follow_up=kept is None)


def _take_seats(facts: Facts, space: Space, active: Mapping[int, int]) -> Seats | None:
    """All of them, the largest first; None: one has no room."""
    seats = facts.make_seats()
    whole = [sum(limit[at] for limit in space.limits) for at in range(3)]
    share = {step.number: compute_dominant_share(step, whole) for step, _ in space.instances}
    # Small ones find room beside large ones more often than the other way round.
    order = sorted(active, key=lambda at: (-share[space.instances[at][0].number], at))
    return seats if all(seats.activate_instance(instance, active[instance]) for instance in order) else None


def _deal_seats(facts: Facts, space: Space) -> Seats:
    placement = place_round_robin(space.request)
    worker = {offer: at for at, offers in enumerate(space.offers) for offer in offers}
    seats = facts.make_seats()
    for instance, (step, index) in enumerate(space.instances):
        at = placement[step.number][index]
        seats.activate_in_offer(instance, worker[at], at)
    return seats


def _add_copies(copies: Copies, held: list[set[int]], seats: Seats, pairs: Iterable[Seat]) -> None:
    for instance, worker in pairs:
        if not copies.holds_copy(worker, instance) and seats.add_copy(instance, worker):
            copies.add_copy(held, worker, instance)


def _list_pairs(facts: Facts, held: Mapping[str, tuple[str, ...]]) -> Iterator[Seat]:
    return (
        (facts.position[instance], facts.worker_at[worker]) for instance, workers in held.items() for worker in workers
    )


def _find_missing(copies: Copies, seats: Seats) -> Iterator[Seat]:
    """One standby after another, each where it has room and loads least."""
    facts = copies.facts
    for instance in facts.stateful:
        # Lazily on purpose: each seat is taken before the next is looked for.
        for _ in range(facts.settings.num_standbys + 1 - len(copies.find_holders(instance))):
            free = [
                at
                for at in facts.allowed[instance]
                if not copies.holds_copy(at, instance) and seats.may_add_copy(instance, at)
            ]
            if free:
                yield instance, copies.find_least_loaded(free)


def _limit_movements(movements: Iterable[Movement], copies: Copies) -> Iterator[Movement]:
    """What has no room for its warm-up waits for it."""
    facts = copies.facts
    for moving in movements:
        there = copies.holds_copy(facts.worker_at[moving.target], facts.position[moving.instance])
        yield moving if there or moving.how != "warm up" else replace(moving, how="no room")


def _make_outcome(
    copies: Copies, seats: Seats, movements: tuple[Movement, ...] = (), *, follow_up: bool = False
) -> Outcome:
    return Outcome(copies.make_assignment(), movements, follow_up, {**seats.active, **seats.copies})
