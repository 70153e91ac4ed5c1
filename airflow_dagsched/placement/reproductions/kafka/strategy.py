"""The order of the whole: an even target first, then copies that are not caught up there are put right.

deal actives ─> balance ─> deal standbys ─> balance ─> move actives ─> move standbys ─> stateless
└───────── target, whatever the lags ─────────────┘   └─ to caught-up workers ─┘
"""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.values import Outcome
from airflow_dagsched.placement.reproductions.kafka.fallback import are_lags_missing, keep_prior
from airflow_dagsched.placement.reproductions.kafka.movements import Budget, move_actives, move_standbys
from airflow_dagsched.placement.reproductions.kafka.standbys import deal_standbys, make_swap_rule
from airflow_dagsched.placement.reproductions.kafka.target import balance_loads, deal_actives


def assign_kafka(facts: Facts) -> Outcome:
    """The assignment of Kafka's trunk; a follow-up as long as a copy is not where the target has it."""
    if are_lags_missing(facts):
        return keep_prior(facts)
    copies = Copies(facts)
    # HighAvailabilityTaskAssignor.assignActiveStatefulTasks, then assignStandbyReplicaTasks: lags have no say yet.
    deal_actives(copies, facts.stateful)
    balance_loads(copies, copies.active)
    if facts.settings.num_standbys:
        deal_standbys(copies)
        balance_loads(copies, copies.standby, make_swap_rule(facts))
    # One counter for both kinds of movement, actives first.
    budget = Budget(facts.settings.max_warmups)
    movements = (*move_actives(copies, budget), *move_standbys(copies, budget))
    copies.deal_stateless(copies.compute_active_load)
    # Movements planned, not warm-ups granted: Kafka probes again also where none was to spare.
    return Outcome(copies.make_assignment(), movements, follow_up=bool(movements))
