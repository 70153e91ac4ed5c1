"""A plan placed anew by another policy than the one it was made with."""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.passes.apply_policy import apply_policy
from airflow_dagsched.plan.passes.exclusions import exclude_pruned
from airflow_dagsched.plan.passes.pin_hosts import pin_hosts
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.settings import DEFAULTS, Settings


def place_by(made: Plan, dataflow: Dataflow, cluster: Cluster, policy: Policy, settings: Settings = DEFAULTS) -> Plan:
    """The plan with the containers of every group as the policy places them; ``settings``: those it was made with."""
    draft = Draft.empty(Problem.of(dataflow, cluster, settings, Run(policy=policy)), made.digest)
    return pin_hosts(apply_policy(exclude_pruned(replace(draft, plan=made)))).plan
