"""Spark's settings for how parallel a step is: all of its number, but for what its author says."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.managers.parallelism import find_task_cores, make_session_settings
from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.planner import plan
from tests.plan.drawn import drawn, standalone

SHUFFLES = {
    "spark.sql.shuffle.partitions": "5",
    "spark.sql.adaptive.coalescePartitions.minPartitionNum": "5",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}
SCANS = {"spark.sql.files.minPartitionNum": "5", "spark.sql.files.maxPartitionNum": "5"}
ROWS = {"spark.sql.leafNodeDefaultParallelism": "5"}


@pytest.mark.parametrize(
    ("author", "told"),
    [
        ((), {**SHUFFLES, **SCANS, **ROWS}),
        (("spark.sql.shuffle.partitions", "spark.executor.memory"), {**SCANS, **ROWS}),
        (("spark.sql.adaptive.advisoryPartitionSizeInBytes",), {**SCANS, **ROWS}),
        (("spark.sql.files.maxPartitionBytes",), {**SHUFFLES, **ROWS}),
        (("spark.default.parallelism",), {**SHUFFLES, **SCANS}),
    ],
)
def test_what_the_author_names_is_theirs(author: tuple[str, ...], told: dict[str, str]) -> None:
    assert make_session_settings(5, author) == told


def test_where_nothing_is_declared_nothing_is_set() -> None:
    assert make_session_settings(None, ()) == {}


@pytest.mark.parametrize(("cores", "each"), [((1, 1), None), ((2, 2), "2"), ((2, 4), "2"), ((1, 4), None)])
def test_a_task_has_the_cores_of_an_instance_where_all_are_alike(cores: tuple[int, int], each: str | None) -> None:
    """c is in another application."""
    sizes = [{"cores": count, "parallelism": 4} for count in cores]
    flow = drawn("a == b; c", a=sizes[0], b=sizes[1], c={"cores": 3, "isolate": True})
    group = next(one for one in plan(flow, standalone(8)).groups if "a" in one.steps)
    task_cores = find_task_cores(group, flow)
    assert make_submission(group, standalone(8), task_cores=task_cores).conf.get("spark.task.cpus") == each
    # Of a local application Spark hands out threads: one that had fewer than a task wants would wait for ever.
    here = Cluster(manager="local", workers=standalone(8).workers)
    assert "spark.task.cpus" not in make_submission(group, here, task_cores=task_cores).conf
