"""Whether a plan is as good as it says, and says all it must: ``dagsched check --strict``, and tests of the planner.

Comes in: what ``checking`` takes. Goes out: the violations of its rules, then those of the rules here. Nothing here
keeps a plan from being launched, for a plan that breaks one of these rules is slower than it need be, or wrong about
itself, and gives the same rows: nobody but the command line and tests may call it.

    lower_bound            the bound is neither less nor more than what can be derived
    comparison             what the groups were chosen from: the chosen is this plan, no other is better
    limits                 what keeps each group from computing sooner
    known_work             how much of the work is measured, declared, assumed
    waiting                no group waits without a reason
    held_sizes             what a policy placed for good holds no more than it need
    reported_constraints   what the author asked for is reported
"""

from __future__ import annotations

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.collector import pause_collector
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.plan.checking import RULES, Violation, apply_rules
from airflow_dagsched.plan.checking.facts.plan_facts import NOTHING_BEGUN, Facts
from airflow_dagsched.plan.checking.optimality.comparison import check_comparison
from airflow_dagsched.plan.checking.optimality.held_sizes import check_held_sizes
from airflow_dagsched.plan.checking.optimality.known_work import check_known_work
from airflow_dagsched.plan.checking.optimality.limits import check_limits
from airflow_dagsched.plan.checking.optimality.lower_bound import check_bound
from airflow_dagsched.plan.checking.optimality.reported_constraints import check_reported_constraints
from airflow_dagsched.plan.checking.optimality.waiting import check_waiting
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings

OPTIMALITY_RULES = (
    check_waiting,
    check_bound,
    check_limits,
    check_comparison,
    check_known_work,
    check_held_sizes,
    check_reported_constraints,
)


@pause_collector
def check_strictly(
    plan: Plan,
    dataflow: Dataflow,
    cluster: Cluster,
    settings: Settings = DEFAULTS,
    *,
    state: State = NOTHING_BEGUN,
) -> tuple[Violation, ...]:
    """All violations of ``plan``, of correctness first; the arguments are those of ``checking.check``."""
    # Correctness first: the rules here look things up that are there only in a sound plan.
    return apply_rules((*RULES, *OPTIMALITY_RULES), Facts.of(plan, dataflow, cluster, settings, state))
