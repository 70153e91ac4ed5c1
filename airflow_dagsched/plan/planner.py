"""Dataflow + cluster -> plan: a tuple of passes of one signature, each adding what it knows to the plan.

A plan grows from left to right::

    Plan(digest) ──grouped──> groups, spills ──sized──> containers ──timed──> times, makespan ──hosted──> hosts
"""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import checked, digest
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.validate import valid_graph, validate_cluster
from airflow_dagsched.plan.given import Given, Pass
from airflow_dagsched.plan.groups import Grouped, group_graph
from airflow_dagsched.plan.hosts import hosted
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.size import sized
from airflow_dagsched.plan.times import timed
from airflow_dagsched.plan.values import Group, Plan


def plan(dataflow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS) -> Plan:
    """The whole plan: a pure function of its arguments, whatever the order of their arrays.

    Raises ``InvalidInput`` where one of them breaks a rule, ``DoesNotFit`` where a group is larger than the cluster.
    """
    given = Given(valid_graph(dataflow), validate_cluster(cluster), checked(Settings, settings, "settings"))
    made = Plan(dataflow=dataflow.name, digest=digest(given.graph.dataflow))
    for step in PASSES:
        made = step(made, given)
    return made


def grouped(made: Plan, given: Given) -> Plan:
    """The plan with its groups and spills."""
    grouping = group_graph(given.graph)
    return replace(made, groups=tuple(_group(found) for found in grouping.groups), spills=grouping.spills)


def _group(found: Grouped) -> Group:
    return Group(id=found.id, steps=found.steps, after=found.after, reason=found.reason)


PASSES: tuple[Pass, ...] = (grouped, sized, timed, hosted)
