"""A drawn dataflow as an author's DAG."""

from __future__ import annotations

from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.graph import build_graph


@task.spark_step
def rows(spark, *, above=()):
    return spark.range(3)


def make_flow(dag: DAG, drawn: Dataflow, **settings: Any) -> SparkDataflow:
    """The steps, channels, ordinary tasks and edges of ``drawn``, in the DAG; loops are no part of it."""
    graph = build_graph(drawn)
    steps, made = {step.id: step for step in drawn.steps}, dict[str, Any]()
    above: dict[str, list[str]] = {}
    for channel in drawn.channels:
        above.setdefault(channel.dst, []).append(channel.src)
    late = {
        f"{drawn.name}.{one.id}": one.runtime_s for one in drawn.tasks if one.runtime_s and _is_above(drawn, one.id)
    }
    with SparkDataflow(drawn.name, task_runtimes=late, **settings) as flow:
        for name in (graph.ids[node] for node in graph.order):
            if name in steps:
                inputs = [made[up] for up in dict.fromkeys(above.get(name, ()))]
                made[name] = rows.override(task_id=name, **_declare(steps[name]))(above=inputs)
            else:
                made[name] = EmptyOperator(task_id=name, dag=dag)
        for before, after in drawn.dependencies:
            made[before] >> made[after]
    return flow


def _declare(step: Step) -> dict[str, Any]:
    return {
        "parallelism": step.parallelism, "cores": step.cores, "memory": step.memory_mb, "disk": step.disk_mb,
        "runtime_s": step.runtime_s, "isolate": step.isolate, "pinned": step.pinned,
    }  # fmt: skip


def _is_above(drawn: Dataflow, task_id: str) -> bool:
    """Whether a step waits for the task."""
    steps = {step.id for step in drawn.steps}
    return any(before == task_id and after in steps for before, after in drawn.dependencies)
