"""The order of the whole, and when to let things be.

Where room is limited, what is to move may wait for room that something else takes, and that for the first. So there
a round is only as good as what it leads to (``measure``): towards the target if that comes out lower, else with all
actives where they are, else nothing changes. The first round of all can't be compared with one before it: it is at
rest if the next would change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.fitted import refitted
from airflow_dagsched.placement.high_availability.prior import NOBODY, Prior, prior_of
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.actives import target_actives
from airflow_dagsched.placement.high_availability.sticky.measure import is_less
from airflow_dagsched.placement.high_availability.sticky.owners import Owners, owners_of
from airflow_dagsched.placement.high_availability.sticky.rounds import this_round
from airflow_dagsched.placement.high_availability.sticky.standbys import target_standbys
from airflow_dagsched.placement.high_availability.sticky.stateless import place_stateless
from airflow_dagsched.placement.high_availability.sticky.targets import Targets
from airflow_dagsched.placement.high_availability.values import RUNNING, Lag, Outcome


def assign(facts: Facts) -> Outcome:
    """The next round towards a level assignment; a follow-up as long as a copy is catching up.

    Raises ``DoesNotFit`` where an instance finds no room beside the others.
    """
    seats = facts.seats()
    owners = owners_of(facts, seats)
    if facts.space is None or not _may_stay(facts, owners):
        made = _round(facts, owners, seats, goes=True)
        goes_on = made.follow_up or _changes_next(facts, made)
        return replace(made, follow_up=goes_on)
    rounds = _rounds(facts, owners, seats)
    return next((made for made in rounds if _leads_down(facts, owners, made)), None) or _rest(facts)


def _changes_next(facts: Facts, made: Outcome) -> bool:
    """Whether there was no round before, room is limited, and the next would not leave all as it is."""
    if facts.space is None or facts.previous is not None:
        return False
    later = replace(facts, previous=made.assignment)
    later = replace(later, reports=_caught_up(facts, prior_of(later)))
    return assign(later).assignment != made.assignment


def _may_stay(facts: Facts, owners: Owners) -> bool:
    """Whether no worker is gone, and nothing has to leave the one it is on."""
    before = owners.prior.active
    return len(before) == len(facts.instances) and all(before[at] == worker for at, worker in owners.active.items())


def _rounds(facts: Facts, owners: Owners, seats: Seats) -> Iterator[Outcome]:
    """The best first."""
    for goes in (True, False):
        try:
            yield _round(facts, owners, seats.copy(), goes=goes)
        except DoesNotFit:  # on the way only: everything has room where it is
            continue


def _round(facts: Facts, owners: Owners, seats: Seats, *, goes: bool) -> Outcome:
    """Towards a level assignment, or with ``goes`` false one where all actives are where they are."""
    now = seats.copy()
    active = target_actives(facts, owners, seats) if goes else owners.active
    stateless = place_stateless(facts, active, seats)
    standbys = target_standbys(facts, owners, active, seats)
    return this_round(facts, owners, Targets(active, standbys, stateless), now)


def _leads_down(facts: Facts, owners: Owners, made: Outcome) -> bool:
    """Whether nothing changes, or all for the better: now, or when what is planted has caught up."""
    if made.assignment == facts.previous:
        return True
    later = replace(facts, previous=made.assignment)
    then = prior_of(later)
    if is_less(facts, then, owners.prior):
        return True
    if not made.assignment.warmup:
        return False
    later = replace(later, reports=_caught_up(facts, then))
    seats = later.seats()
    try:
        following = _round(later, owners_of(later, seats), seats, goes=True)
    except DoesNotFit:
        return False
    return is_less(facts, prior_of(replace(facts, previous=following.assignment)), owners.prior)


def _caught_up(facts: Facts, then: Prior) -> tuple[dict[str, Lag], ...]:
    """Lags by instance."""
    found: list[dict[str, Lag]] = [{} for _ in facts.instances]
    for instance in facts.stateful:
        for at in (*then.standby.get(instance, NOBODY), *then.warmup.get(instance, NOBODY)):
            found[instance][facts.id(at)] = 0.0
        found[instance][facts.id(then.active[instance])] = RUNNING
    return tuple(found)


def _rest(facts: Facts) -> Outcome:
    """All as before, without warm-ups."""
    made = refitted(facts)
    return replace(made, follow_up=made.assignment != facts.previous)
