"""What spark-submit is told of the groups of a plan, for whoever prints it: as their launches are told."""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.launch.managers.author_sizes import settle_settings
from airflow_dagsched.launch.managers.executors import size_executors
from airflow_dagsched.launch.managers.parallelism import find_task_cores
from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.launch.planning.planned import Planned
from airflow_dagsched.plan.plan_types import Group, Plan


def add_settings(planned: Planned) -> Plan:
    """The plan, each group with the Spark settings that its launch gives to spark-submit, besides its author's.

    What the author sets of these has the author's value, where that may be told.
    """
    facts, manager = planned.plan.facts, planned.cluster.manager
    # A standalone Master's queue is not waited in: once there is room, its launch plans anew.
    queued = facts.waiting if facts is not None and manager != "standalone" else ()

    def settle(group: Group) -> Group:
        # All of it is left out: nothing is submitted.
        if not group.containers:
            return group
        task_cores = find_task_cores(group, planned.dataflow)
        exact = group.id not in queued
        made = make_submission(group, planned.cluster, exact=exact, task_cores=task_cores, settings=planned.settings)
        asked = size_executors(group, planned.cluster, settings=planned.settings)
        author = planned.author.get(group.steps[0], {})
        return replace(group, settings=settle_settings(made.conf, author, asked, manager))

    return replace(planned.plan, groups=tuple(map(settle, planned.plan.groups)))
