"""The checker: whether a plan, whoever made it, is one of this dataflow on this cluster.

It shares no code with the passes that make plans.
"""

from __future__ import annotations

from itertools import chain

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.collector import uncollected
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.plan.check.asked import check_asked
from airflow_dagsched.plan.check.assignment import check_assignment
from airflow_dagsched.plan.check.capacity import check_capacity
from airflow_dagsched.plan.check.channels import check_channels
from airflow_dagsched.plan.check.compared import check_compared
from airflow_dagsched.plan.check.drivers import check_drivers
from airflow_dagsched.plan.check.facts import NOTHING_BEGUN, Facts, Violation
from airflow_dagsched.plan.check.instances import check_instances
from airflow_dagsched.plan.check.lasting import check_lasting
from airflow_dagsched.plan.check.members import check_members
from airflow_dagsched.plan.check.names import check_names
from airflow_dagsched.plan.check.progress import check_progress
from airflow_dagsched.plan.check.pruning import check_pruning
from airflow_dagsched.plan.check.required import check_required
from airflow_dagsched.plan.check.timeline import check_times
from airflow_dagsched.plan.check.told import check_told
from airflow_dagsched.plan.check.waits import check_waits
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.values import Plan

__all__ = ["RULES", "Violation", "check"]

RULES = (
    check_members,
    check_names,
    check_told,
    check_channels,
    check_waits,
    check_instances,
    check_assignment,
    check_capacity,
    check_required,
    check_drivers,
    check_lasting,
    check_pruning,
    check_times,
    check_progress,
    check_compared,
    check_asked,
)


@uncollected
def check(
    plan: Plan,
    dataflow: Dataflow,
    cluster: Cluster,
    settings: Settings = DEFAULTS,
    *,
    state: State = NOTHING_BEGUN,
) -> tuple[Violation, ...]:
    """All violations of ``plan``, none if it is fine; the others are valid. Linear but for sorting.

    :param dataflow: with the measured values that the plan was made with; so is ``cluster``.
    :param settings: those that the plan was made with.
    :param state: which groups have finished, and which run; without one, none.
    """
    facts = Facts.of(plan, dataflow, cluster, settings, state)
    return tuple(chain.from_iterable(rule(facts) for rule in RULES))
