"""The order of the whole."""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.sticky.actives import target_actives
from airflow_dagsched.placement.high_availability.sticky.owners import owners_of
from airflow_dagsched.placement.high_availability.sticky.rounds import this_round
from airflow_dagsched.placement.high_availability.sticky.standbys import target_standbys
from airflow_dagsched.placement.high_availability.sticky.stateless import place_stateless
from airflow_dagsched.placement.high_availability.sticky.targets import Targets
from airflow_dagsched.placement.high_availability.values import Outcome


def assign(facts: Facts) -> Outcome:
    """The next round towards a level assignment; a follow-up as long as a copy is catching up.

    Raises ``DoesNotFit`` where an instance finds no room beside the others.
    """
    seats = facts.seats()
    owners = owners_of(facts, seats)
    now = seats.copy()
    active = target_actives(facts, owners, seats)
    stateless = place_stateless(facts, active, seats)
    standbys = target_standbys(facts, owners, active, seats)
    return this_round(facts, owners, Targets(active, standbys, stateless), now)
