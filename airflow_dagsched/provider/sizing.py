"""From the live cluster to the Spark settings of one group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_dagsched.launch.settings import settings
from airflow_dagsched.plan.planner import plan

if TYPE_CHECKING:
    from airflow_dagsched.launch.escalation import Level
    from airflow_dagsched.model.cluster import Cluster
    from airflow_dagsched.provider.dataflow import SparkDataflow
    from airflow_dagsched.provider.graph import DataflowGraph


def settings_for(
    flow: SparkDataflow, graph: DataflowGraph, group_id: str, cluster: Cluster, level: Level
) -> tuple[dict[str, str], float]:
    """Spark settings and predicted seconds of a group; raises :class:`DoesNotFit`."""
    planned = plan(graph.dataflow, cluster)
    group = next(group for group in planned.groups if group.id == group_id)
    return settings(group, cluster.manager, level), group.end_s - group.start_s
