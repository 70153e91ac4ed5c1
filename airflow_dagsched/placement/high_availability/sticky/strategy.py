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
from airflow_dagsched.placement.high_availability.prior import NOBODY, Prior, read_prior
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.actives import choose_target_actives
from airflow_dagsched.placement.high_availability.sticky.measure import is_less
from airflow_dagsched.placement.high_availability.sticky.owners import Owners, find_owners
from airflow_dagsched.placement.high_availability.sticky.rounds import plan_round
from airflow_dagsched.placement.high_availability.sticky.standbys.choose_standbys import choose_target_standbys
from airflow_dagsched.placement.high_availability.sticky.stateless import place_stateless
from airflow_dagsched.placement.high_availability.sticky.targets import Targets
from airflow_dagsched.placement.high_availability.values import RUNNING, Lag, Outcome
from airflow_dagsched.placement.high_availability.within_capacity import refit_assignment


def assign_sticky(facts: Facts) -> Outcome:
    """The next round towards a level assignment; a follow-up as long as a copy is catching up.

    Raises ``DoesNotFit`` where an instance finds no room beside the others.
    """
    seats = facts.make_seats()
    owners = find_owners(facts, seats)
    if facts.space is None or not _may_all_stay(facts, owners):
        outcome = _make_round(facts, owners, seats, goes=True)
        goes_on = outcome.follow_up or _may_change_next(facts, outcome)
        return replace(outcome, follow_up=goes_on)
    # Where room is limited, two instances that wait for each other's room would move to and fro without end.
    rounds = _list_rounds(facts, owners, seats)
    return next((outcome for outcome in rounds if _is_improvement(facts, owners, outcome)), None) or _keep_prior(facts)


def _may_change_next(facts: Facts, outcome: Outcome) -> bool:
    """Whether there was no round before, room is limited, and the next would not leave all as it is."""
    if facts.space is None or facts.previous is not None:
        return False
    later = replace(facts, previous=outcome.assignment)
    # Played on as if all had caught up: what rests then would only be woken for nothing.
    later = replace(later, reports=_assume_caught_up(facts, read_prior(later)))
    return assign_sticky(later).assignment != outcome.assignment


def _may_all_stay(facts: Facts, owners: Owners) -> bool:
    """Whether no worker is gone, and nothing has to leave the one it is on."""
    before = owners.prior.active
    return len(before) == len(facts.instances) and all(before[at] == worker for at, worker in owners.active.items())


def _list_rounds(facts: Facts, owners: Owners, seats: Seats) -> Iterator[Outcome]:
    """The best first."""
    for goes in (True, False):
        try:
            yield _make_round(facts, owners, seats.copy_active(), goes=goes)
        except DoesNotFit:  # on the way only: everything has room where it is
            continue


def _make_round(facts: Facts, owners: Owners, seats: Seats, *, goes: bool) -> Outcome:
    """Towards a level assignment, or with ``goes`` false one where all actives are where they are."""
    # Before the target takes the owners' seats for its own: the round begins from what is.
    now = seats.copy_active()
    active = choose_target_actives(facts, owners, seats) if goes else owners.active
    stateless = place_stateless(facts, active, seats)
    standbys = choose_target_standbys(facts, owners, active, seats)
    return plan_round(facts, owners, Targets(active, standbys, stateless), now)


def _is_improvement(facts: Facts, owners: Owners, outcome: Outcome) -> bool:
    """Whether nothing changes, or all for the better: now, or when what is planted has caught up."""
    if outcome.assignment == facts.previous:
        return True
    later = replace(facts, previous=outcome.assignment)
    then = read_prior(later)
    if is_less(facts, then, owners.prior):
        return True
    if not outcome.assignment.warmup:
        return False
    later = replace(later, reports=_assume_caught_up(facts, then))
    seats = later.make_seats()
    try:
        following = _make_round(later, find_owners(later, seats), seats, goes=True)
    except DoesNotFit:
        return False
    return is_less(facts, read_prior(replace(facts, previous=following.assignment)), owners.prior)


def _assume_caught_up(facts: Facts, then: Prior) -> tuple[dict[str, Lag], ...]:
    """Lags by instance."""
    lags: list[dict[str, Lag]] = [{} for _ in facts.instances]
    for instance in facts.stateful:
        for at in (*then.standby.get(instance, NOBODY), *then.warmup.get(instance, NOBODY)):
            lags[instance][facts.get_id(at)] = 0.0
        lags[instance][facts.get_id(then.active[instance])] = RUNNING
    return tuple(lags)


def _keep_prior(facts: Facts) -> Outcome:
    """All as before, without warm-ups."""
    outcome = refit_assignment(facts)
    return replace(outcome, follow_up=outcome.assignment != facts.previous)
