"""From a plan file back to the groups of a dataflow: see ``tune``, which makes one."""

from __future__ import annotations

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import digest
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.check.channels import check_channels
from airflow_dagsched.plan.check.facts import Facts
from airflow_dagsched.plan.check.members import check_members
from airflow_dagsched.plan.check.told import check_told
from airflow_dagsched.plan.check.waits import check_waits
from airflow_dagsched.plan.groups import Grouped, Grouping
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.values import Plan

STRUCTURE = (check_members, check_channels, check_waits, check_told)
"""The rules that groups must keep on any cluster."""


def adopted(found: Plan, dataflow: Dataflow, settings: Settings = DEFAULTS) -> Grouping:
    """The groups of a plan file; raises ``InvalidInput`` where it is not of ``dataflow``, as that is now."""
    if found.digest != digest(dataflow):
        raise InvalidInput("plan file", "digest", f"dataflow {dataflow.name!r} has changed since it was tuned")
    facts = Facts.of(found, dataflow, Cluster(manager="local"), settings)
    violations = [violation for rule in STRUCTURE for violation in rule(facts)]
    if violations:
        raise InvalidInput("plan file", "groups", "; ".join(map(str, violations)))
    groups = tuple(Grouped(group.id, group.steps, group.after, group.reason) for group in found.groups)
    return Grouping(groups, found.spills)
