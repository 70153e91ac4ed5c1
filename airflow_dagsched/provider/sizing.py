"""From the cluster as it is to the Spark settings of one group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.settings import settings
from airflow_dagsched.model.cluster import Cluster, Free
from airflow_dagsched.model.codec import read
from airflow_dagsched.model.state import with_measured
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.provider.history import recall

if TYPE_CHECKING:
    from airflow_dagsched.launch.escalation import Level
    from airflow_dagsched.model.dataflow import Dataflow
    from airflow_dagsched.plan.values import Group
    from airflow_dagsched.provider.hook import PlannerHook
    from airflow_dagsched.provider.launch import LaunchOperator


def settings_for(launch: LaunchOperator, hook: PlannerHook, level: Level) -> tuple[dict[str, str], float]:
    """Spark settings and predicted seconds of the launch task's group; raises :class:`DoesNotFit`."""
    cluster = cluster_of(launch.flow.cluster, hook)
    alone = with_measured(_alone(launch.graph.dataflow, launch.group.steps), recall(launch.history))
    group = _sized(alone, cluster, Settings(slots=launch.flow.slots, together=(launch.group.steps,)))
    return settings(group, cluster.manager, level), group.end_s - group.start_s


def cluster_of(declared: str | Cluster | None, hook: PlannerHook) -> Cluster:
    """The declared cluster, else the live one."""
    if declared is None:
        return hook.cluster()
    return declared if isinstance(declared, Cluster) else read(Cluster, declared)


def _sized(dataflow: Dataflow, cluster: Cluster, told: Settings) -> Group:
    """The only group of ``dataflow`` on what is free; if that is too little, on what there is: then the
    application waits at its cluster manager.
    """
    try:
        return plan(dataflow, cluster, told).groups[0]
    except DoesNotFit:
        idle = replace(cluster, workers=tuple(replace(worker, free=Free()) for worker in cluster.workers))
        return plan(dataflow, idle, told).groups[0]


def _alone(dataflow: Dataflow, steps: tuple[str, ...]) -> Dataflow:
    """The part of ``dataflow`` that is one group: what other groups need is no concern of this launch."""
    inside = set(steps)
    return replace(
        dataflow,
        steps=tuple(step for step in dataflow.steps if step.id in inside),
        channels=tuple(channel for channel in dataflow.channels if {channel.src, channel.dst} <= inside),
        tasks=(),
        dependencies=tuple(edge for edge in dataflow.dependencies if set(edge) <= inside),
    )
