"""The order of the whole: an even target first, then copies that are not caught up there are put right.

deal actives ─> balance ─> deal standbys ─> balance ─> move actives ─> move standbys ─> stateless
└───────── target, whatever the lags ─────────────┘   └─ to caught-up workers ─┘
"""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.kafka.fallback import keep_prior, lags_are_missing
from airflow_dagsched.placement.high_availability.kafka.movements import Budget, move_actives, move_standbys
from airflow_dagsched.placement.high_availability.kafka.standbys import deal_standbys, may_swap
from airflow_dagsched.placement.high_availability.kafka.target import balance, deal, deal_stateless
from airflow_dagsched.placement.high_availability.values import Outcome


def assign(facts: Facts) -> Outcome:
    """The assignment of Kafka's trunk; a follow-up as long as a copy is not where the target has it."""
    if lags_are_missing(facts):
        return keep_prior(facts)
    copies = Copies(facts)
    deal(copies, facts.stateful)
    balance(copies, copies.active)
    if facts.settings.num_standbys:
        deal_standbys(copies)
        balance(copies, copies.standby, may_swap(facts))
    budget = Budget(facts.settings.max_warmups)
    movements = (*move_actives(copies, budget), *move_standbys(copies, budget))
    deal_stateless(copies)
    return Outcome(copies.assignment(), movements, follow_up=bool(movements))
