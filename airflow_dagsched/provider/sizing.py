"""From the cluster as it is to the Spark settings of one application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.cutting import Fit, idle, only
from airflow_dagsched.launch.settings import settings
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import read
from airflow_dagsched.plan.informed import informed
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.provider.history import recall

if TYPE_CHECKING:
    from airflow_dagsched.launch.escalation import Level
    from airflow_dagsched.model.dataflow import Dataflow
    from airflow_dagsched.plan.values import Group
    from airflow_dagsched.provider.hook import PlannerHook
    from airflow_dagsched.provider.launch import LaunchOperator


@dataclass(frozen=True, slots=True)
class Sized:
    """What one application gets, and what it is predicted to take."""

    conf: dict[str, str]
    predicted_s: float
    cores: int
    wanted: dict[str, int]
    """Cores that the instances of each step want together."""
    memory_mb: int
    """What each instance has, if as many run as can."""


def sized(launch: LaunchOperator, hook: PlannerHook, level: Level, steps: Sequence[str]) -> Sized:
    """How ``steps`` run as one application; raises :class:`DoesNotFit`."""
    known = knowledge(launch, hook, level)
    alone = only(known.dataflow, steps)
    group = _group(alone, known)
    conf = settings(group, known.cluster.manager, level)
    return Sized(
        conf=conf,
        predicted_s=group.end_s - group.start_s,
        cores=sum(box.cores for box in group.containers),
        wanted={step.id: step.cores * step.parallelism for step in alone.steps},
        memory_mb=_heap_mb(conf) // max(1, group.containers[0].cores // min(step.cores for step in alone.steps)),
    )


def knowledge(launch: LaunchOperator, hook: PlannerHook, level: Level) -> Fit:
    """The dataflow as measured, the cluster as it is, and how many steps may run side by side."""
    flow = launch.flow
    wanted = Settings(slots=1 if level.one_at_a_time else flow.slots)
    dataflow, cluster = informed(
        launch.graph.dataflow,
        cluster_of(flow.cluster, hook),
        recall(launch.history),
        connection=flow.conn_id,
        settings=wanted,
    )
    return Fit(dataflow, cluster, wanted)


def cluster_of(declared: str | Cluster | None, hook: PlannerHook) -> Cluster:
    """The declared cluster, else the live one."""
    if declared is None:
        return hook.cluster()
    return declared if isinstance(declared, Cluster) else read(Cluster, declared)


def _heap_mb(conf: Mapping[str, str]) -> int:
    """Of an executor; a local application's is its driver's."""
    return int(conf.get("spark.executor.memory", conf["spark.driver.memory"]).removesuffix("m"))


def _group(alone: Dataflow, known: Fit) -> Group:
    """The only group of ``alone`` on what is free; if that is too little, on what there is: then the application
    waits at its cluster manager.
    """
    try:
        return plan(alone, known.cluster, known.settings).groups[0]
    except DoesNotFit:
        return plan(alone, idle(known.cluster), known.settings).groups[0]
