"""Priority weights and pool slots of launch tasks, as Airflow's scheduler reads them."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG, task
from airflow.serialization.serialized_objects import DagSerialization

from airflow_dagsched import SparkDataflow
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.plan.settings import DEFAULTS


@task.spark_step
def rows(spark, *, above=None):
    return spark.range(3)


@task
def count(rows):
    return rows["rows"]


def chain() -> None:
    """a (100 s) ──> (count) ──> b (20 s), 8 wide."""
    a = rows.override(task_id="a", runtime_s=100.0)()
    b = rows.override(task_id="b", runtime_s=20.0, parallelism=4, cores=2)()
    count(a) >> b


def launches(dag: DAG) -> list[Any]:
    """After serialization."""
    again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    return [again.get_task(name) for name in ("f.launch_a", "f.launch_b")]


def test_the_longest_remaining_path(dag: DAG) -> None:
    """8 + 100 + 10 (an ordinary task's default) + 8 + 20, and 8 + 20."""
    with SparkDataflow("f"):
        chain()
    found = launches(dag)
    assert [launch.priority_weight for launch in found] == [146, 28]
    assert [dag.get_task(launch.task_id).weight_rule for launch in found] == ["absolute"] * 2
    assert dag.get_task("f.a").priority_weight == 0, "a mirror's trigger lets those of other tasks go first"


@pytest.mark.parametrize("given", [{"priority_weight": 5}, {"weight_rule": "upstream"}])
def test_the_author_comes_first(dag: DAG, given: dict[str, Any]) -> None:
    with SparkDataflow("f", **given):
        chain()
    (first, _) = launches(dag)
    assert first.priority_weight == given.get("priority_weight", 1)


def test_default_args_are_the_authors_word_too(dag: DAG) -> None:
    dag.default_args = {"priority_weight": 7}
    with SparkDataflow("f"):
        chain()
    assert [launch.priority_weight for launch in launches(dag)] == [7, 7]


@pytest.mark.parametrize(("cores", "slots"), [(16, [1, 8]), (6, [1, 6])])
def test_slots_of_the_pool_are_cores(dag: DAG, cores: int, slots: list[int]) -> None:
    """a can use one core, b eight: never more than the pool has."""
    with SparkDataflow("f", pool="spark", pool_cores=cores):
        chain()
    found = launches(dag)
    assert [(launch.pool, launch.pool_slots) for launch in found] == [("spark", slot) for slot in slots]


def test_slots_are_the_authors_where_they_say_so(dag: DAG) -> None:
    with SparkDataflow("f", pool="spark", pool_cores=16, pool_slots=3):
        chain()
    assert [launch.pool_slots for launch in launches(dag)] == [3, 3]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pool": "spark", "pool_cores": 4, "pool_slots": 5}, "pool_slots: 5 slots of a pool of 4 are never free"),
        ({"pool_cores": 4}, "pool_cores: is the size of a pool"),
        ({"pool": "spark", "pool_cores": 0}, "pool_cores: must be at least 1, not 0"),
        ({"slots": 0}, "slots: Expected `int` >= 1"),
    ],
)
def test_what_would_never_be_scheduled(dag: DAG, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        SparkDataflow("f", **given)


def test_a_dag_has_as_many_slots_as_the_command(dag: DAG) -> None:
    """Else what is printed for a dataflow's file would not be what its DAG launches."""
    with SparkDataflow("f") as flow:
        chain()
    assert flow.spec.settings.slots == DEFAULTS.slots
