"""What trunk does when no lag could be read: everything stays where it was (FallbackPriorTaskAssignor)."""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY, read_prior
from airflow_dagsched.placement.high_availability.values import Outcome
from airflow_dagsched.placement.reproductions.kafka.standbys import deal_standbys


def are_lags_missing(facts: Facts) -> bool:
    """There was an assignment, yet nothing is known of any copy of it."""
    return facts.previous is not None and bool(facts.stateful) and not any(facts.reports)


def keep_prior(facts: Facts) -> Outcome:
    """Actives stay, whatever the balance; what has no worker goes to the least loaded. Plan again soon."""
    prior = read_prior(facts)
    copies = Copies.of(facts, prior.active)
    for instance in range(len(facts.instances)):
        if instance not in prior.active:
            copies.add_copy(copies.active, _choose_standby(copies, prior.standby.get(instance, NOBODY)), instance)
    deal_standbys(copies)
    # Lags may be known soon: FallbackPriorTaskAssignor always asks for another round.
    return Outcome(copies.make_assignment(), follow_up=True)


def _choose_standby(copies: Copies, standbys: tuple[int, ...]) -> int:
    return copies.find_least_loaded(standbys or range(len(copies.loads)))
