"""What trunk does when no lag could be read: everything stays where it was (FallbackPriorTaskAssignor)."""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.kafka.standbys import deal_standbys
from airflow_dagsched.placement.high_availability.prior import NOBODY, prior_of
from airflow_dagsched.placement.high_availability.values import Outcome


def lags_are_missing(facts: Facts) -> bool:
    """There was an assignment, yet nothing is known of any copy of it."""
    return facts.previous is not None and bool(facts.stateful) and not any(facts.reports)


def keep_prior(facts: Facts) -> Outcome:
    """Actives stay, whatever the balance; what has no worker goes to the least loaded. Plan again soon."""
    prior, copies = prior_of(facts), Copies(facts)
    for instance, worker in prior.active.items():
        copies.add(copies.active, worker, instance)
    for instance in range(len(facts.instances)):
        if instance not in prior.active:
            copies.add(copies.active, _first_standby(copies, prior.standby.get(instance, NOBODY)), instance)
    deal_standbys(copies)
    return Outcome(copies.assignment(), follow_up=True)


def _first_standby(copies: Copies, standbys: tuple[int, ...]) -> int:
    return copies.least_loaded(standbys or range(len(copies.loads)))
