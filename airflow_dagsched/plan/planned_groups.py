"""From a plan file back to the groups of a dataflow: see ``tune``, which makes one."""

from __future__ import annotations

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.codec import digest_dataflow
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking import check_groups
from airflow_dagsched.plan.grouping.coarsest import Grouped, Grouping
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings


def load_planned_groups(found: Plan, dataflow: Dataflow, settings: Settings = DEFAULTS) -> Grouping:
    """The groups of a plan file; raises ``InvalidInput`` where it is not of ``dataflow``, as that is now."""
    if found.digest != digest_dataflow(dataflow):
        raise InvalidInput("plan file", "digest", f"dataflow {dataflow.name!r} has changed since it was tuned")
    # By the rules that need no cluster: a parse knows none, and the file may have been edited by hand.
    violations = check_groups(found, dataflow, settings)
    if violations:
        raise InvalidInput("plan file", "groups", "; ".join(map(str, violations)))
    groups = tuple(Grouped(group.id, group.steps, group.after, group.reason) for group in found.groups)
    return Grouping(groups, found.spills)
