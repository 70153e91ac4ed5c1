"""What a launch learns of a table on an HDFS, from a server that plays the NameNode, and where it would go for it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow, Table
from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen, plan_on_free_cluster
from airflow_dagsched.launch.escalation.levels import LEVELS
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.runtime import allocation
from airflow_dagsched.provider.submission.input_pruning import Pruning
from tests.provider.test_pruning import DAY, flow_of, launch_of, run
from tests.provider.test_webhdfs import NOWHERE, ROOT, locations, on, page, said
from tests.testbed.answers import answering

TABLE = "hdfs://lake/t"
FIRST, SECOND = "/t/day%3D2013-01-01", "/t/day%3D2013-01-02"
STORED = {
    ROOT: said({}),
    on("LISTSTATUS_BATCH"): page(0, ("day=2013-01-01", "DIRECTORY", 0), ("day=2013-01-02", "DIRECTORY", 0)),
    on("LISTSTATUS_BATCH", SECOND): page(0, ("a", "FILE", 7)),
    on("GETFILEBLOCKLOCATIONS", f"{SECOND}/a"): locations("w2", "w3"),
}
BESIDE = {
    on("LISTSTATUS_BATCH", SECOND): page(0, ("a", "FILE", 7), ("b", "FILE", 7)),
    on("GETFILEBLOCKLOCATIONS", f"{SECOND}/b"): locations("w3"),
}
WORKERS = [{"id": f"w{at}", "host": f"w{at}.example.com", "cores": 4, "memory_mb": 8000} for at in (1, 2, 3, 4)]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")
    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.check_java", lambda group: None)


def connect(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Spark on YARN, whose ResourceManager nobody may ask, and an HDFS."""
    extra = {"webhdfs": url, "cluster": {"manager": "yarn", "workers": WORKERS}}
    connection = {"conn_type": "spark", "host": "yarn", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))


def listening(monkeypatch: pytest.MonkeyPatch) -> list[Pruning]:
    """What launches learn of their inputs from now on."""
    learned: list[Pruning] = []
    allocate_room = allocation.allocate_room

    def listens(launch: Any, hook: Any, level: Any, steps: Any, pruning: Pruning, **how: Any) -> Any:
        learned.append(pruning)
        return allocate_room(launch, hook, level, steps, pruning, **how)

    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.allocate_room", listens)
    return learned


def test_the_day_s_folder_alone_is_listed_and_its_holders_are_kept(
    dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """w2 and w3, by their short names, hold the only block: one of them will do."""
    learned = listening(monkeypatch)
    with answering(STORED) as (url, asked):
        connect(monkeypatch, url)
        launch = launch_of(flow_of(TABLE, tmp_path))
        _, driver, _ = run(launch, tmp_path)
    assert driver.step("read")["needed"][TABLE]["folders"] == ["day=2013-01-02"]
    assert [one.path for one in asked if FIRST in one.path] == []
    known = allocation.gather_facts_of_run(launch.spec, PlannerHook("spark_default"), LEVELS[0], learned[0])
    (source,) = next(step.sources for step in known.dataflow.steps if step.id == "read")
    assert [one.key for one in source.partitions] == [{"day": "2013-01-02"}, {"day": "2013-01-01"}]
    assert source.partitions[0].blocks[0].hosts == ("w2.example.com", "w3.example.com")
    chosen = plan_on_free_cluster(known, launch.group.steps)
    assert isinstance(chosen, Chosen)
    assert {box.worker for box in chosen.group.containers} <= {"w2", "w3"}


def test_a_name_node_that_is_silent_is_warned_of_and_is_no_reason_to_go_anywhere(
    dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect(monkeypatch, NOWHERE)
    with caplog.at_level(logging.WARNING):
        _, driver, _ = run(launch_of(flow_of(TABLE, tmp_path)), tmp_path)
    assert driver.step("read")["needed"] == {}
    assert caplog.text.count(f"no preference for the workers that hold {TABLE}: http://127.0.0.1:9/") == 1


def two_groups(folder: Path, table: str = TABLE) -> SparkDataflow:
    """clean (writes a table of days) ──> other, in an application of its own, whose only input are these rows"""
    with SparkDataflow("f", work_dir=str(folder / "work"), apart=[("clean", "other")]) as flow:

        @task.spark_step(writes=Table(table, partition_by=("day",)))
        def clean(spark):
            return spark.range(3)

        @task.spark_step(parallelism=6)
        def other(rows):
            return rows

        other(clean())
    return flow


def committed(folder: Path, *days: str, table: str = TABLE) -> Feed:
    """What the first group left behind: its commit record, and its feed."""
    record = folder / "work" / "commits" / escape_key(table) / escape_key(DAY.key) / "0000000001.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"partitions": [f"day={day}" for day in days]}))
    return Feed("n", final=True, steps={"clean": StepDone("clean", "success", path=table, bytes=7)})


def test_a_later_group_goes_where_its_input_was_written(
    dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit wrote one day, whose block w2 and w3 hold; six instances of four cores a worker are on both."""
    learned = listening(monkeypatch)
    answers = {**STORED, on("GETFILEBLOCKLOCATIONS", f"{SECOND}/a"): locations("w2"), **BESIDE}
    with answering(answers) as (url, asked):
        connect(monkeypatch, url)
        launch = two_groups(tmp_path).launches()[1]
        result, _, _ = run(launch, tmp_path, feeds=[committed(tmp_path, "2013-01-02")])
    assert result["steps"]["other"]["state"] == "success"
    assert [one.path for one in asked if FIRST in one.path] == []
    (partition,) = learned[0].asked.stored["clean/"].partitions
    assert partition.key == {"day": "2013-01-02"}
    assert [block.hosts for block in partition.blocks] == [("w2",), ("w3",)]
    known = allocation.gather_facts_of_run(launch.spec, PlannerHook("spark_default"), LEVELS[0], learned[0])
    chosen = plan_on_free_cluster(known, launch.group.steps)
    assert isinstance(chosen, Chosen)
    assert {box.worker for box in chosen.group.containers} == {"w2", "w3"}
    assert sum(len(box.instances) for box in chosen.group.containers) == 6
    assert chosen.group.placement.startswith("hosts of a source's blocks are known: data_locality")


def test_a_group_whose_input_nobody_can_locate_may_be_anywhere(
    dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    learned = listening(monkeypatch)
    connect(monkeypatch, NOWHERE)
    with caplog.at_level(logging.WARNING):
        run(two_groups(tmp_path).launches()[1], tmp_path, feeds=[committed(tmp_path, "2013-01-02")])
    assert learned[0].asked.stored == {}
    assert caplog.text.count("no preference for the workers that hold clean/: http://127.0.0.1:9/") == 1


@pytest.mark.parametrize("record", [None, "", "{"])
def test_a_commit_that_says_nothing_of_folders_may_be_all_of_the_table(
    record: str | None, dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = listening(monkeypatch)
    answers = {**STORED, on("LISTSTATUS_BATCH", FIRST): page(0, ("a", "FILE", 7))}
    answers |= {on("GETFILEBLOCKLOCATIONS", f"{FIRST}/a"): locations("w1")}
    feed = committed(tmp_path, "2013-01-02")
    (file,) = (tmp_path / "work" / "commits").rglob("*.json")
    if record is None:
        file.unlink()
    else:
        file.write_text(record)
    with answering(answers) as (url, _):
        connect(monkeypatch, url)
        run(two_groups(tmp_path).launches()[1], tmp_path, feeds=[feed])
    hosts = [block.hosts for one in learned[0].asked.stored["clean/"].partitions for block in one.blocks]
    assert hosts == [("w1",), ("w2", "w3")]
