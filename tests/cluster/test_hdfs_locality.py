"""A table on a real HDFS whose DataNodes are on Spark's workers: one day of it is read where it lies.

DataNodes    .2          .3          .4                      four workers, three DataNodes, one copy of each block
day 1        a b                     c d
day 2                    a b c d
worker       .2          .3          .4          .5
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG
from msgspec.structs import replace

from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen, plan_on_free_cluster
from airflow_dagsched.launch.escalation.levels import LEVELS
from airflow_dagsched.launch.managers.hosts import locate_sources, rename_hosts
from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow, Source
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.pruning import PruningInput, list_stored
from airflow_dagsched.plan.pruning.conditions.where import parse_condition
from airflow_dagsched.plan.pruning.sources import select_found
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.clusters.spark_connection import Reached
from airflow_dagsched.provider.clusters.webhdfs import WebHdfsLister
from airflow_dagsched.provider.runtime.allocation import gather_facts_of_run
from tests.cluster.submitting import result, start
from tests.plan.drawn import drawn
from tests.plan.placing import place_by
from tests.provider.test_hdfs_launch import committed, listening, two_groups
from tests.provider.test_pruning import run as launched
from tests.testbed import event_log
from tests.testbed.event_log import EventLog
from tests.testbed.hdfs import SPARK, Hdfs, hdfs
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]

ONE, TWO, THREE, FOUR = (f"127.0.0.{at}" for at in (2, 3, 4, 5))
TABLE = "/tables/my sales"
DAYS = {"2013-01-01": (ONE, ONE, THREE, THREE), "2013-01-02": (TWO, TWO, TWO, TWO)}
"""Day -> host of each of its files."""
ROWS = 100_000
READ = {
    **SPARK,
    "spark.sql.files.maxPartitionBytes": "1m",
    "spark.sql.files.openCostInBytes": "1m",
    "spark.locality.wait": "0s",
}
"""A task a file: else Spark packs such small files together, whoever holds them. And no task waits for a near core,
as none would if they took long: where they run is up to the placement alone."""


class Stored(NamedTuple):
    """The table, and what is in it."""

    hdfs: Hdfs
    sums: Mapping[str, int]

    @property
    def location(self) -> str:
        return f"{self.hdfs.url}{TABLE}"

    @property
    def reached(self) -> Reached:
        return Reached("c", "spark://m", extra={"webhdfs": self.hdfs.http})

    def hosts(self, day: str) -> dict[str, tuple[str, ...]]:
        """File -> who has its only block."""
        with WebHdfsLister.of(self.location, self.reached) as lister:
            return {entry.name: entry.blocks[0].hosts for entry in lister.list_children(f"{TABLE}/day={day}")}


@pytest.fixture(scope="module")
def started() -> Iterator[StandaloneCluster]:
    with standalone_cluster(workers=4, cores=4, memory_mb=2048, tokens=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def stored() -> Iterator[Stored]:
    """The table as drawn above."""
    with hdfs([ONE, TWO, THREE]) as found:
        table = Stored(found, {day: _write_day(found, day, hosts) for day, hosts in DAYS.items()})
        yield table


def _write_day(found: Hdfs, day: str, hosts: Sequence[str]) -> int:
    """One file a host; the sum of all their values."""
    rng, total = random.Random(day), 0
    for at, host in enumerate(hosts):
        values = [rng.randrange(2**40) for _ in range(ROWS)]
        content = io.BytesIO()
        pq.write_table(pa.table({"value": pa.array(values, pa.int64())}), content, use_dictionary=False)
        found.write_on(host, f"{TABLE}/day={day}/part-{at}.parquet", content.getvalue())
        total += sum(values)
    return total


def scan_of(table: Stored, day: str, cluster: Cluster) -> Dataflow:
    """A step that reads the table's partition of that day."""
    source = Source(path=TABLE, where=f"day = '{day}'")
    condition = parse_condition(f"day = '{day}'", {})
    with WebHdfsLister.of(table.location, table.reached) as lister:
        found = replace(select_found(source, condition, list_stored(lister, TABLE, condition)), left_out=())
    flow = drawn("scan", scan={"parallelism": 4, "memory_mb": 300, "sources": (source,)})
    return locate_sources(flow, rename_hosts({("scan", TABLE): found}, cluster))


def placed(flow: Dataflow, cluster: Cluster, policy: str) -> Group:
    """By the policy alone. Pruning would take three of four instances away, too: one task reads so few bytes."""
    chosen = Policy(policy, PlacementSettings(), State())
    made = place_by(plan(flow, cluster, run=Run(PruningInput(mode=False))), flow, cluster, chosen)
    assert check(made, flow, cluster) == ()
    return made.groups[0]


def run(started: StandaloneCluster, table: Stored, day: str, policy: str, folder: Path) -> tuple[Group, EventLog]:
    """Plan the scan of a day by a policy, submit it, and read Spark's own account of it."""
    cluster = PlannerHook("cluster").cluster()
    group = placed(scan_of(table, day, cluster), cluster, policy)
    log = folder / policy
    log.mkdir()
    conf = {**make_submission(group, cluster).conf, **event_log.settings(log), **READ}
    arguments = ("scan", str(len(group.containers)), table.location, f"day={day}")
    done = result(start(started.master, conf, *arguments))
    assert done == {"rows": 4 * ROWS, "sum": table.sums[day]}
    return group, event_log.read(log)


@pytest.mark.parametrize("day", DAYS)
def test_a_day_is_read_where_its_blocks_are(
    day: str, started: StandaloneCluster, stored: Stored, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """By data locality every scan task is NODE_LOCAL, and other workers have no executor; in turn all have one."""
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", started.connection())
    holders = set(DAYS[day])
    near, log = run(started, stored, day, "data_locality", tmp_path)
    assert {box.worker for box in near.containers} == holders
    assert log.executors == holders
    assert [task.locality for task in log.scans] == ["NODE_LOCAL"] * 4
    assert {task.host for task in log.scans} == holders
    assert log.remote_bytes == 0
    _, other = run(started, stored, day, "round_robin", tmp_path)
    assert other.executors == {ONE, TWO, THREE, FOUR}
    with capsys.disabled():
        print(f"\n{day}, on {len(holders)} of 4 workers    executors   bytes read   over the network")
        for name, one in (("data_locality", log), ("round_robin", other)):
            print(f"    {name:24}{len(one.executors):>12}{one.bytes:>13}{one.remote_bytes:>19}")


@pytest.mark.parametrize("day", DAYS)
def test_a_later_group_is_planned_where_its_input_was_written(
    day: str, started: StandaloneCluster, stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows come over a channel, from a step of another application that wrote that day last."""
    connection = json.loads(started.connection())
    connection["extra"]["webhdfs"] = stored.hdfs.http
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path / "reserved"))
    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.check_java", lambda group: None)
    learned = listening(monkeypatch)
    with DAG("sales", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)):
        launch = two_groups(tmp_path, stored.location).launches()[1]
    launched(launch, tmp_path, feeds=[committed(tmp_path, day, table=stored.location)])
    assert {one.key["day"] for one in learned[0].asked.stored["clean/"].partitions} == {day}
    chosen = plan_on_free_cluster(
        gather_facts_of_run(launch.spec, PlannerHook("spark_default"), LEVELS[0], learned[0]), launch.group.steps
    )
    assert isinstance(chosen, Chosen)
    assert {box.worker for box in chosen.group.containers} == set(DAYS[day])


def test_a_dead_data_node_is_no_reason_to_go_there(
    started: StandaloneCluster, stored: Stored, monkeypatch: Any
) -> None:
    """What it alone held may be read anywhere, if ever. (Last: it stays dead.)"""
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", started.connection())
    assert sorted(stored.hosts("2013-01-01").values()) == [(ONE,), (ONE,), (THREE,), (THREE,)]
    stored.hdfs.kill(ONE)
    assert sorted(stored.hosts("2013-01-01").values()) == [(), (), (THREE,), (THREE,)]
    cluster = PlannerHook("cluster").cluster()
    near = placed(scan_of(stored, "2013-01-01", cluster), cluster, "data_locality")
    assert THREE in {box.worker for box in near.containers}
