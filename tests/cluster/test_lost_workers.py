"""A launch on a real standalone cluster whose planned worker dies: the run ends right on another, in the same try."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import Interval, SparkDataflow, Table
from airflow_dagsched.launch.feed import Feed
from airflow_dagsched.plan.hosts import TOKEN_PREFIX
from airflow_dagsched.provider.facts import RunFacts
from airflow_dagsched.provider.follow import Follower, Memory
from airflow_dagsched.provider.running import GroupRun
from tests.cluster.submitting import SMALL, SPARK_SUBMIT
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]

WITHIN_S = 5.0
HOSTS = ("127.0.0.2", "127.0.0.3")


@pytest.fixture
def started() -> Iterator[StandaloneCluster]:
    with standalone_cluster(workers=2, cores=2, memory_mb=2048, tokens=True) as cluster:
        yield cluster


@pytest.fixture
def connected(started: StandaloneCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandaloneCluster:
    raw = json.loads(started.connection())
    raw["extra"] |= {"executor_within_s": WITHIN_S, "spark-binary": "spark-submit"}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(raw))
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path / "reserved"))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PATH", str(SPARK_SUBMIT.parent), prepend=":")
    return started


def flow_of(folder: Path) -> SparkDataflow:
    """orders ══> total: a table of one row."""
    with (
        DAG("sales", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)),
        SparkDataflow("f", conn_id="cluster", work_dir=str(folder / "work"), conf=SMALL) as flow,
    ):

        @task.spark_step(memory=400)
        def orders(spark: Any) -> Any:
            return spark.range(1000)

        @task.spark_step(memory=400, writes=Table(str(folder / "total")))
        def total(rows: Any) -> Any:
            return rows.selectExpr("sum(id) as total")

        total(orders())
    return flow


def run_of(flow: SparkDataflow, folder: Path) -> GroupRun:
    (launch,) = flow.launches()
    facts = RunFacts(
        dag_id="sales", run_id="r", try_number=1, clear_number=0, run_started="", conf={}, interval=Interval("once"),
        context={}, states={}, skipped={}, feeds={},
    )  # fmt: skip
    follower = Follower(Feed("n", ""), lambda *_: None, lambda *_: None, lambda *_: None)
    return GroupRun(launch, {}, facts, follower, Memory(folder / "run"), folder / "run", (folder,))


def planned_in(conf: dict[str, str]) -> str:
    """The only host that the tokens leave."""
    slots = {int(found[1]) for name in conf if (found := re.search(rf"\.{TOKEN_PREFIX}(\d+)\.amount", name))}
    (slot,) = {1, 2} - slots
    return HOSTS[slot - 1]


def before_submit(run: GroupRun, does: Callable[[int, dict[str, str]], None]) -> None:
    """``does(n, conf)`` once the n-th application is planned, before it is submitted."""
    submit, count = run.launch.submit, iter(range(1, 9))

    def late(context: Any, **how: Any) -> None:
        does(next(count), how["conf"])
        submit(context, **how)

    run.launch.submit = late  # type: ignore[method-assign]


def test_a_worker_that_dies_between_plan_and_submit(
    connected: StandaloneCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """
    planned on w1 ── w1 dies ── submitted: tokens keep it off w2 ── stopped ── planned anew on w2
    """
    run, planned = run_of(flow_of(tmp_path), tmp_path), list[str]()

    def kill_the_first(number: int, conf: dict[str, str]) -> None:
        planned.append(planned_in(conf))
        if number == 1:
            connected.kill(planned[0])

    before_submit(run, kill_the_first)
    with caplog.at_level(logging.WARNING):
        result = run.execute()
    assert sorted(planned) == list(HOSTS)
    assert (result["applications"], result["steps"]["total"]["state"]) == (2, "success")
    assert pq.read_table(tmp_path / "total").to_pydict() == {"total": [sum(range(1000))]}
    (why,) = result["cuts"]
    assert why == (
        f"it has no executor, and can't get one: {planned[0]} is gone since it was planned: "
        "stopped, and planned anew for what is there now"
    )
    assert caplog.text.count(why) == 1
