"""Spark's settings for how parallel a step is: all of its number, but for what its author says."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.managers.parallelism import find_task_cores, make_session_settings

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


@pytest.mark.parametrize(("cores", "each"), [((1, 1), 1), ((2, 2), 2), ((2, 4), 2), ((1, 4), 1), ((), 1)])
def test_a_task_has_the_cores_of_an_instance_where_all_are_alike(cores: tuple[int, ...], each: int) -> None:
    assert find_task_cores(cores) == each
