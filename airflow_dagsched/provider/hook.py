"""``PlannerHook``: the cluster behind an Airflow Spark connection, and plans for it."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from airflow.sdk import DAG, BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.check import Violation, check
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.values import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_dagsched.provider.dataflow import SparkDataflow

LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
MASTER_UI_PORT = 8080
ANSWER_WITHIN_S = 5.0
LOCAL_MEMORY_SHARE = 0.75
"""Of this machine's memory: the rest is for Airflow and Python workers."""


class PlannerHook(BaseHook):
    """Reads the cluster of a ``spark`` connection, and plans dataflows for it.

    Connection extra ``master_ui`` is the address of a standalone Master's web page where it isn't port 8080
    of the master's host.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "spark_default"
    conn_type = "spark"
    hook_name = "Spark planner"

    def __init__(self, conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.conn_id = conn_id
        self._known: tuple[Dataflow, Cluster] | None = None

    def check_connection(self, group: str) -> Connection:
        """The connection; raises :class:`LaunchRefused` where it is missing or no Spark connection.

        The provider's own hook would fall back to YARN without a word.
        """
        try:
            connection = self.get_connection(self.conn_id)
        except AirflowNotFoundException:
            raise LaunchRefused(
                group, f"there is no Airflow connection {self.conn_id!r}",
                f"add it: airflow connections add {self.conn_id} --conn-type spark --conn-host 'local[*]'",
            ) from None  # fmt: skip
        if connection.conn_type != "spark":
            raise LaunchRefused(
                group, f"connection {self.conn_id!r} is of type {connection.conn_type!r}", "its type must be 'spark'"
            )
        if not connection.host:
            raise LaunchRefused(
                group,
                f"connection {self.conn_id!r} has no host",
                "its host is the Spark master: 'local[*]', 'spark://host'",
            )
        if str(connection.extra_dejson.get("deploy-mode") or "client") != "client":
            raise LaunchRefused(
                group, f"connection {self.conn_id!r} asks for deploy mode 'cluster'",
                "the driver program runs beside the Airflow worker: take 'deploy-mode' out of the connection's extra",
            )  # fmt: skip
        return connection

    def master(self) -> str:
        """The master's address as spark-submit takes it."""
        connection = self.check_connection(self.conn_id)
        return f"{connection.host}:{connection.port}" if connection.port else str(connection.host)

    def cluster(self) -> Cluster:
        """The cluster as it is now.

        Raises :class:`LaunchRefused` where the manager doesn't answer or is one we can't ask.
        """
        master = self.master()
        if LOCAL.fullmatch(master):
            return local_cluster(master)
        if master.startswith("spark://"):
            return standalone_cluster(self._standalone_state(master))
        raise LaunchRefused(self.conn_id, f"master {master!r} can't be asked for its workers", "use local or spark://")

    def plan(self, what: DAG | SparkDataflow | Dataflow, cluster: Cluster | None = None) -> Plan:
        """The plan for a dataflow, or for the only one of a DAG, on ``cluster`` (by default the live one)."""
        dataflow = dataflow_of(what)
        where = cluster or self.cluster()
        self._known = (dataflow, where)
        return plan(dataflow, where)

    def check(self, planned: Plan) -> tuple[Violation, ...]:
        """Violations of the plan this hook made last."""
        if self._known is None:
            raise ValueError("check() is for the plan this hook made: call plan() first")
        return check(planned, *self._known)

    def test_connection(self) -> tuple[bool, str]:
        """For the button in Airflow's connection form."""
        try:
            found = self.cluster()
        except LaunchRefused as error:
            return False, str(error)
        cores = sum(worker.free_cores for worker in found.workers)
        return True, f"{found.manager}: {len(found.workers)} worker(s), {cores} cores free"

    def _standalone_state(self, master: str) -> dict[str, Any]:
        connection = self.check_connection(self.conn_id)
        host = str(urlsplit(master.split(",", maxsplit=1)[0]).hostname)
        base = connection.extra_dejson.get("master_ui") or f"http://{host}:{MASTER_UI_PORT}"
        url = f"{base.rstrip('/')}/json/"
        try:
            with urlopen(url, timeout=ANSWER_WITHIN_S) as answer:
                state: dict[str, Any] = json.load(answer)
                return state
        except (URLError, TimeoutError, ValueError) as error:
            raise LaunchRefused(
                self.conn_id, f"the Spark Master's page {url} gave no answer we can read: {error}",
                "start the Master, or set the connection's extra 'master_ui' to its address",
            ) from None  # fmt: skip


def local_cluster(master: str) -> Cluster:
    """``local[n]`` as a cluster of one worker: this machine."""
    match = LOCAL.fullmatch(master)
    assert match is not None
    asked = match[1] or "1"
    cores = (os.cpu_count() or 1) if asked == "*" else int(asked)
    memory = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20 * LOCAL_MEMORY_SHARE)
    return Cluster(manager="local", workers=(Worker(id="local", host="localhost", cores=cores, memory_mb=memory),))


def standalone_cluster(state: dict[str, Any]) -> Cluster:
    """The Master's ``/json/`` answer as a cluster; only workers that are alive."""
    alive = [worker for worker in state.get("workers", ()) if worker.get("state") == "ALIVE"]
    return Cluster(manager="standalone", workers=tuple(_worker(worker) for worker in alive))


def _worker(raw: dict[str, Any]) -> Worker:
    return Worker(
        id=raw["id"],
        host=raw["host"],
        cores=raw["cores"],
        memory_mb=raw["memory"],
        free=Free(cores=raw.get("coresfree"), memory_mb=raw.get("memoryfree")),
    )


def dataflow_of(what: DAG | SparkDataflow | Dataflow) -> Dataflow:
    """The planner's view of ``what``; raises ``ValueError`` for a DAG without, or with several, dataflows."""
    if isinstance(what, Dataflow):
        return what
    if not isinstance(what, DAG):
        return what.dataflow
    flows = list(dataflows(what))
    if len(flows) != 1:
        raise ValueError(f"DAG {what.dag_id!r} has {len(flows)} dataflows: pass one of them")
    return flows[0].dataflow


def dataflows(dag: DAG) -> Iterator[SparkDataflow]:
    """The dataflows of a DAG: its task groups that have one."""
    for group in dag.task_group_dict.values():
        if hasattr(type(group), "dataflow"):
            yield group
