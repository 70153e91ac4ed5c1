"""Every Python block of docs/authoring.md is run: dataflows parse, and the unit test in it passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task
from pyspark.sql import SparkSession

from airflow_dagsched import SparkDataflow, SparkSqlStep, Table

PAGE = Path(__file__).parents[2] / "docs" / "authoring.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
NAMES = {"task": task, "SparkDataflow": SparkDataflow, "SparkSqlStep": SparkSqlStep, "Table": Table}


def run(block: str, dag: DAG, tmp_path: Path) -> dict[str, Any]:
    """Names the block leaves, run as a file of its own inside ``dag``; functions keep their source."""
    file = tmp_path / "block.py"
    file.write_text(block)
    found = dict(NAMES, __name__="block")
    with dag:
        exec(compile(block, str(file), "exec"), found)
    return found


def flow_of(dag: DAG) -> SparkDataflow:
    return next(group for group in dag.task_group_dict.values() if isinstance(group, SparkDataflow))


@pytest.mark.parametrize("block", [block for block in BLOCKS if "def test_" not in block and "@dag" not in block])
def test_block_is_a_dataflow(block: str, tmp_path: Path) -> None:
    """Each block makes a dataflow the planner takes, with a launch task for each of its groups."""
    dag = DAG("docs", schedule=None)
    run(block, dag, tmp_path)
    flow = flow_of(dag)
    assert {step for group in flow.grouping.groups for step in group.steps} == set(flow.steps)
    assert {launch.group.id for launch in flow.launches()} == {group.id for group in flow.grouping.groups}


def test_first_example_is_one_application(tmp_path: Path) -> None:
    """The page says which tasks the first DAG has."""
    from airflow.dag_processing.dagbag import DagBag

    file = tmp_path / "shop.py"
    file.write_text(BLOCKS[0])
    (dag,) = DagBag(file, collect_dags=False).process_file(str(file), only_if_updated=False)
    assert set(dag.task_ids) == {"sales.orders", "sales.clean", "sales.best", "sales.launch", "sales.launch_started"}


def test_task_between_makes_two_applications(tmp_path: Path) -> None:
    """The page names the two launch tasks of the dataflow with a branch."""
    dag = DAG("docs", schedule=None)
    run(next(block for block in BLOCKS if "task.branch" in block), dag, tmp_path)
    assert {launch.task_id for launch in flow_of(dag).launches()} == {
        "sensors.launch_readings",
        "sensors.launch_averages",
    }


@pytest.mark.spark
def test_the_unit_test_of_the_page(spark: SparkSession, tmp_path: Path) -> None:
    """``run_local`` as the page shows it."""
    dag = DAG("docs", schedule=None)
    names = run(next(block for block in BLOCKS if "def test_totals" in block), dag, tmp_path)
    with dag:
        names["test_totals"](spark)
    assert set(flow_of(dag).steps) == {"orders_of_the_day", "totals"}


@pytest.mark.spark
def test_the_loop_of_the_page(spark: SparkSession, tmp_path: Path) -> None:
    """Newton's roots come out."""
    dag = DAG("docs", schedule=None)
    run(next(block for block in BLOCKS if "flow.repeat" in block and "with Spark" in block), dag, tmp_path)
    found = flow_of(dag).run_local(spark=spark)["better"]
    assert {row.id: round(row.root, 6) for row in found.collect()} == {1: 1.0, 2: 1.414214, 3: 1.732051, 4: 2.0}
