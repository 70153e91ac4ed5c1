"""A launch on a real standalone cluster whose planned worker dies: the run ends right on another, in the same try."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import Interval, SparkDataflow, Table
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.plan.passes.pin_hosts import TOKEN_PREFIX
from airflow_dagsched.provider.following.follower import Follower
from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.runtime.execute import run_attempt
from airflow_dagsched.provider.runtime.memory import Memory
from airflow_dagsched.provider.spec.run_facts import RunFacts
from demo.rest import until
from tests.cluster.submitting import SMALL, SPARK_SUBMIT
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]

WITHIN_S = 5.0
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")


@pytest.fixture(scope="module")
def started() -> Iterator[StandaloneCluster]:
    """Three workers; each test leaves one less."""
    with standalone_cluster(workers=3, cores=2, memory_mb=2048, tokens=True) as cluster:
        yield cluster


@pytest.fixture
def connected(started: StandaloneCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandaloneCluster:
    raw = json.loads(started.connection())
    raw["extra"] |= {"executor_within_s": WITHIN_S}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(raw))
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path / "reserved"))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PATH", str(SPARK_SUBMIT.parent), prepend=":")
    return started


@pytest.fixture
def dag() -> Iterator[DAG]:
    with DAG("sales", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as opened:
        yield opened


def run_of(flow: SparkDataflow, folder: Path) -> Attempt:
    (launch,) = flow.launches()
    facts = RunFacts(
        dag_id="sales", run_id="r", try_id=TryId(try_number=1), began=0.0, conf={}, interval=Interval("once"),
        context={}, states={}, skipped={}, feeds={},
    )  # fmt: skip
    follower = Follower(Feed("n"), lambda *_: None, lambda *_: None, lambda *_: None)
    return Attempt(launch, {}, facts, follower, Memory(folder / "run"), folder / "run", (folder,))


def planned_in(conf: dict[str, str], cluster: StandaloneCluster) -> str:
    """The only live host that the tokens leave."""
    slots = {int(found[1]) for name in conf if (found := re.search(rf"\.{TOKEN_PREFIX}(\d+)\.amount", name))}
    (host,) = [host for slot, host in enumerate(HOSTS, 1) if slot not in slots and host in cluster.workers()]
    return host


class FirstPlanned:
    """Looks at the settings of the first application before it is submitted: ``then(host)`` is told where it goes."""

    def __init__(self, run: Attempt, cluster: StandaloneCluster, then: Callable[[str], None]) -> None:
        self.host = ""
        self._submit, self._cluster, self._then = run.launch.submit, cluster, then
        run.launch.submit = self.submit  # type: ignore[method-assign]

    def submit(self, context: Any, **how: Any) -> None:
        if not self.host:
            self.host = planned_in(how["conf"], self._cluster)
            self._then(self.host)
        self._submit(context, **how)


def hosts_used(cluster: StandaloneCluster) -> list[set[str]]:
    """Of each application that has ended, in order: live hosts that had its executors."""
    ended = sorted(one["id"] for one in cluster.state()["completedapps"])
    return [set(cluster.executors(name)) for name in ended]


def test_a_worker_that_dies_between_plan_and_submit(
    connected: StandaloneCluster, dag: DAG, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """planned on w1 ── w1 dies ── submitted: tokens keep it off the others ── stopped ── planned anew on another"""
    with SparkDataflow("f", conn_id="cluster", work_dir=str(tmp_path / "work"), conf=SMALL) as flow:

        @task.spark_step(memory=400)
        def orders(spark: Any) -> Any:
            return spark.range(1000)

        @task.spark_step(memory=400, writes=Table(str(tmp_path / "total")))
        def total(rows: Any) -> Any:
            return rows.selectExpr("sum(id) as total")

        total(orders())
    run = run_of(flow, tmp_path)
    first = FirstPlanned(run, connected, connected.kill)
    with caplog.at_level(logging.WARNING):
        result = run_attempt(run)
    assert (result["applications"], result["steps"]["total"]["state"]) == (2, "success")
    assert pq.read_table(tmp_path / "total").to_pydict() == {"total": [sum(range(1000))]}
    (why,) = result["cuts"]
    assert why == (
        f"it has no executor, and can't get one: {first.host} is gone since it was planned: "
        "stopped, and planned anew for what is there now"
    )
    assert caplog.text.count(why) == 1
    nowhere, elsewhere = hosts_used(connected)
    assert (nowhere, len(elsewhere)) == (set(), 1)


def test_a_worker_that_dies_while_a_step_runs(connected: StandaloneCluster, dag: DAG, tmp_path: Path) -> None:
    """kept (committed) ──> slow: its worker dies under it ── stopped ── slow again on another, kept is reused"""
    busy, go = tmp_path / "busy", tmp_path / "go"
    with SparkDataflow("f", conn_id="cluster", work_dir=str(tmp_path / "work"), conf=SMALL) as flow:

        @task.spark_step(memory=400, writes=Table(str(tmp_path / "kept")), reads=())
        def kept(spark: Any) -> Any:
            return spark.range(10).coalesce(1)

        @task.spark_step(memory=400, writes=Table(str(tmp_path / "slow")))
        def slow(rows: Any) -> Any:
            def wait(batches: Any) -> Any:
                busy.touch()
                while not go.exists():
                    time.sleep(0.1)
                yield from batches

            return rows.mapInArrow(wait, rows.schema)

        slow(kept())

    def kill_when_busy(host: str) -> None:
        until("the slow step", lambda: busy.exists() or None, timeout_s=120.0)
        connected.kill(host)
        go.touch()

    run = run_of(flow, tmp_path)
    FirstPlanned(
        run, connected, lambda host: threading.Thread(target=kill_when_busy, args=(host,), daemon=True).start()
    )
    result = run_attempt(run)
    assert (result["applications"], len(result["cuts"])) == (2, 1)
    assert {name: done["state"] for name, done in result["steps"].items()} == {"kept": "reused", "slow": "success"}
    assert pq.read_table(tmp_path / "slow").num_rows == 10
