"""Dataflow + cluster -> plan: a tuple of passes of one signature; each adds what it knows to the draft.

A plan grows from left to right::

    Draft(problem) ──select_groups──> groups, spills ──prune_inputs──> what each group leaves out
                   ──schedule_groups──> containers, times, makespan ──apply_policy──> containers as a policy has them
                   ──trim_instances──> no instance without rows ──pin_hosts──> how executors come to their workers
                   ──report_constraints──> what the author asked for, and where it is
"""

from __future__ import annotations

from collections.abc import Iterable

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import digest_dataflow
from airflow_dagsched.model.collector import pause_collector
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.draft import Draft, Pass
from airflow_dagsched.plan.passes.apply_policy import apply_policy
from airflow_dagsched.plan.passes.pin_hosts import pin_hosts
from airflow_dagsched.plan.passes.prune_inputs import prune_inputs
from airflow_dagsched.plan.passes.report_constraints import report_constraints
from airflow_dagsched.plan.passes.schedule_groups import schedule_groups
from airflow_dagsched.plan.passes.select_groups import select_groups
from airflow_dagsched.plan.passes.trim_instances import trim_instances
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import NO_RUN, Run
from airflow_dagsched.plan.settings import DEFAULTS, Settings

PASSES: tuple[Pass, ...] = (
    select_groups,
    prune_inputs,
    schedule_groups,
    apply_policy,
    trim_instances,
    pin_hosts,
    report_constraints,
)


@pause_collector
def plan(dataflow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS, *, run: Run = NO_RUN) -> Plan:
    """The whole plan: a pure function of its arguments, whatever the order of their arrays.

    :param run: what is asked for, and known of, the run that is planned.
    Raises ``InvalidInput`` where one of them breaks a rule, ``DoesNotFit`` where a step is larger than the cluster.
    """
    return run_passes(PASSES, dataflow, Problem.of(dataflow, cluster, settings, run))


def run_passes(passes: Iterable[Pass], dataflow: Dataflow, problem: Problem) -> Plan:
    """The plan of ``problem``, which is that of ``dataflow``, as ``passes`` make it one after another."""
    draft = Draft.empty(problem, digest_dataflow(dataflow))
    for apply_pass in passes:
        draft = apply_pass(draft)
    return draft.plan
