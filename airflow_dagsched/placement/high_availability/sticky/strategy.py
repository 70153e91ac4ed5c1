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
    """The next round towards a level assignment; a follow-up as long as a copy is catching up."""
    owners = owners_of(facts)
    active = target_actives(facts, owners)
    standbys = target_standbys(facts, owners, active)
    stateless = place_stateless(facts, active)
    return this_round(facts, owners, Targets(active, standbys), stateless)
