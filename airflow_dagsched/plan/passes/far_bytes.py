"""What a plan has read from afar: bytes of blocks whose instance is on no host that holds them."""

from __future__ import annotations

from airflow_dagsched.placement.policies.auto import sum_remote_bytes
from airflow_dagsched.placement.request import make_request
from airflow_dagsched.placement.values import list_offers, name_instance
from airflow_dagsched.plan.passes.apply_policy import list_named_policies, narrow_to_group
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import Policy

NEAR = frozenset({"auto", "data_locality"})
"""Policies that place near what is read; what others do says nothing of the workers they may use."""


def sum_far_bytes(plan: Plan, problem: Problem) -> int:
    """Of the groups that are placed near what they read."""
    policy, named = problem.run.policy, list_named_policies(problem.declared.dataflow)
    if policy is None:
        return 0
    near = (group for group in plan.groups if named.get(group.steps[0], policy.name) in NEAR)
    return sum(_sum_far_bytes(group, problem, policy) for group in near)


def _sum_far_bytes(group: Group, problem: Problem, policy: Policy) -> int:
    part = narrow_to_group(problem.declared.dataflow, group)
    request = make_request(part, list_offers(problem.cluster), policy.settings)
    workers = {name_instance(*one): box.worker for box in group.containers for one in box.instances}
    return sum_remote_bytes(request, workers)[0]
