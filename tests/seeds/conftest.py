"""A standalone cluster of four small workers, and an Airflow that plays the seeds' DAG files on it."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from airflow_dagsched import SparkDataflow
from airflow_dagsched.model.codec import encode_value, read_file
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.commands.bag import find_flows
from tests.dags.conftest import Play, home, play  # noqa: F401 - fixtures
from tests.seeds.answers import ONE, THREE, TWO
from tests.testbed import event_log
from tests.testbed.event_log import EventLog
from tests.testbed.hdfs import SPARK, hdfs
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

DAGS = Path(__file__).with_name("dags")
DAYS, ROWS = 4, 1000
ALL_THERE = {
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
}
"""Spark would else begin, and may have ended, with the executors that came up first, wherever the rows are."""
PART_ROWS = 5 * 2**20 // 8
LAKE = {
    "two_on_w3": [THREE, THREE],
    "four_on_w2": [TWO] * 4,
    "sales/day=0": [ONE],
    "sales/day=1": [TWO],
    "sales/day=2": [THREE],
    "sales/day=3": [ONE, TWO],
}
"""Folder -> who holds each of its files, alone."""


@dataclass(frozen=True, slots=True)
class Played:
    """A DAG file that has run: its dataflows, as they were parsed, and what Spark says of their applications."""

    flows: Mapping[str, SparkDataflow]
    told: Mapping[str, Any]
    """Task -> what it returned."""
    logs: Mapping[str, list[EventLog]]
    """Dataflow -> its applications, in the order in which they began."""
    tables: Path
    launches: Path
    """What its launches have kept."""

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Of a table that it wrote."""
        found: list[dict[str, Any]] = ds.dataset(self.tables / table, format="parquet").to_table().to_pylist()
        return found

    def plan(self, flow: str) -> Plan:
        """By which the only launch of a dataflow was submitted."""
        (kept,) = self.launches.glob(f"*/*/{flow}/*/*/plan.json")
        return read_file(Plan, kept)


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where the seeds' files are played."""

    cluster: StandaloneCluster
    folder: Path
    env: Mapping[str, str]

    def parse(self, name: str) -> dict[str, SparkDataflow]:
        """The dataflows of a DAG file, by name."""
        return {str(flow.group_id): cast("SparkDataflow", flow) for flow in find_flows(str(DAGS / f"{name}.py"))}

    def play(self, name: str, by: Play) -> Played:
        """Run the DAG of a file to its end."""
        flows, logs = self.parse(name), self.folder / "logs"
        told = by(DAGS / f"{name}.py", **self.env)
        assert set(told["tasks"].values()) == {"success"}, told
        ours = {flow: [log for log in event_log.read_all(logs) if log.name == f"{name}.{flow}"] for flow in flows}
        return Played(flows, told["told"], ours, self.folder / "tables", self.folder / "work" / "runs" / name)


@pytest.fixture(scope="session")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeds]:
    """Four workers of 2 cores and 2 GiB; ``pair.json`` declares the first two alone, ``sales`` is four days."""
    folder = tmp_path_factory.mktemp("seeds")
    with (
        standalone_cluster(workers=4, cores=2, memory_mb=2048, tokens=True) as cluster,
        pytest.MonkeyPatch.context() as patch,
    ):
        env = {
            "SEEDS_HOME": str(folder),
            "SPARK_CONF_DIR": str(folder / "conf"),
            "AIRFLOW_CONN_CLUSTER": cluster.connection(),
        }
        for name, value in env.items():
            patch.setenv(name, value)
        _prepare(folder)
        yield Seeds(cluster, folder, env)


@pytest.fixture(scope="module")
def lake(seeds: Seeds) -> Iterator[Seeds]:
    """The same, with an HDFS whose DataNodes are on the first three workers, and in it what ``LAKE`` says."""
    with hdfs([ONE, TWO, THREE]) as files, pytest.MonkeyPatch.context() as patch:
        connection = json.loads(seeds.cluster.connection())
        connection["extra"]["webhdfs"] = files.http
        env = {**seeds.env, "SEEDS_LAKE": files.url, "AIRFLOW_CONN_CLUSTER": json.dumps(connection)}
        for name, value in env.items():
            patch.setenv(name, value)
        for folder, holders in LAKE.items():
            for part, host in enumerate(holders):
                files.write_on(host, f"/{folder}/part-{part}.parquet", make_part(part))
        yield dataclasses.replace(seeds, env=env)


def make_part(part: int) -> bytes:
    """A file of 5 MiB, so that Spark makes a task of each."""
    content, values = io.BytesIO(), range(part * PART_ROWS, (part + 1) * PART_ROWS)
    table = pa.table({"value": pa.array(values, pa.int64())})
    pq.write_table(table, content, use_dictionary=False, compression="none")
    return content.getvalue()


def _prepare(folder: Path) -> None:
    (folder / "logs").mkdir()
    (folder / "conf").mkdir()
    settings = {**event_log.settings(folder / "logs"), **SPARK, **ALL_THERE, "spark.driver.host": "127.0.0.1"}
    (folder / "conf" / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in settings.items())
    )
    live = PlannerHook("cluster").cluster()
    (folder / "pair.json").write_bytes(encode_value(replace(live, workers=live.workers[:2])))
    table = pa.table({"day": [at % DAYS for at in range(ROWS)], "value": range(ROWS)})
    parted = ds.partitioning(pa.schema([("day", pa.int64())]), flavor="hive")
    ds.write_dataset(table, folder / "sales", format="parquet", partitioning=parted)
