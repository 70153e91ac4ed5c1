"""The checker: whether a plan, whoever made it, is right for this dataflow on this cluster.

Comes in: a plan; the dataflow and the cluster with the measured values that the plan was made with; the settings; the
state of its run. Goes out: a ``Violation`` for each rule that is broken, with what breaks it and how; none if the plan
may be launched. Nothing is raised for a plan of nonsense; dataflow, cluster, settings and state must be valid.

Who calls it: whoever is about to launch, print, simulate or tune a plan, and every test that makes one. It shares no
code with what makes plans: only the model, the plan's values and the settings are imported here.

What is checked is what is *right*: structure (each step in one group, channels whole or spilled, no circles), capacity
(nothing above what a worker has free), times (nothing before its inputs, nothing shorter or longer than its parts), and
what the plan promises of the launch (containers, copies of state, drivers, what is left out). Whether a plan is *good*
is another question, for ``optimality``: a wrong comparison must not keep a sound plan from being launched. No rule
reads the text of a reason, only whether there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.collector import pause_collector
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.plan.checking.facts.plan_facts import NOTHING_BEGUN, Facts, Violation
from airflow_dagsched.plan.checking.progress import check_progress
from airflow_dagsched.plan.checking.pruning import check_pruning
from airflow_dagsched.plan.checking.resources.assignment import check_assignment
from airflow_dagsched.plan.checking.resources.capacity import check_capacity
from airflow_dagsched.plan.checking.resources.drivers import check_drivers
from airflow_dagsched.plan.checking.resources.instances import check_instances
from airflow_dagsched.plan.checking.resources.required import check_required
from airflow_dagsched.plan.checking.structure.channels import check_channels
from airflow_dagsched.plan.checking.structure.columns import check_columns
from airflow_dagsched.plan.checking.structure.members import check_members
from airflow_dagsched.plan.checking.structure.names import check_names
from airflow_dagsched.plan.checking.structure.settings import check_settings
from airflow_dagsched.plan.checking.structure.waits import check_waits
from airflow_dagsched.plan.checking.times.group_durations import check_durations
from airflow_dagsched.plan.checking.times.slots import check_slots
from airflow_dagsched.plan.checking.times.timeline import check_times
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings

__all__ = ["RULES", "Violation", "apply_rules", "check", "check_groups"]

Rule = Callable[[Facts], Iterator[Violation]]
GROUP_RULES: tuple[Rule, ...] = (check_members, check_channels, check_waits, check_settings)
"""What groups must keep on any cluster, whatever runs where and when."""
RULES: tuple[Rule, ...] = (
    check_members,
    check_names,
    check_settings,
    check_channels,
    check_columns,
    check_waits,
    check_instances,
    check_assignment,
    check_capacity,
    check_required,
    check_drivers,
    check_slots,
    check_durations,
    check_pruning,
    check_times,
    check_progress,
)


@pause_collector
def check(
    plan: Plan,
    dataflow: Dataflow,
    cluster: Cluster,
    settings: Settings = DEFAULTS,
    *,
    state: State = NOTHING_BEGUN,
) -> tuple[Violation, ...]:
    """All violations of ``plan``, none if it is right; the others are valid. Linear but for sorting.

    :param dataflow: with the measured values that the plan was made with; so is ``cluster``.
    :param settings: those that the plan was made with.
    :param state: which groups have finished, and which run; without one, none.
    """
    return apply_rules(RULES, Facts.of(plan, dataflow, cluster, settings, state))


def check_groups(plan: Plan, dataflow: Dataflow, settings: Settings = DEFAULTS) -> tuple[Violation, ...]:
    """Violations of the groups and spills of ``plan`` alone, which need not say what runs where."""
    return apply_rules(GROUP_RULES, Facts.of(plan, dataflow, Cluster(manager="local"), settings))


def apply_rules(rules: Iterable[Rule], facts: Facts) -> tuple[Violation, ...]:
    """The violations of each rule, in the order of the rules."""
    return tuple(chain.from_iterable(rule(facts) for rule in rules))
