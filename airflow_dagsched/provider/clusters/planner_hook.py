"""``PlannerHook``: the cluster behind an Airflow Spark connection, and plans for it."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk import DAG, BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_dagsched.errors import ClusterUnknown, DagschedError, LaunchRefused
from airflow_dagsched.launch.managers.declared import merge_live_and_declared
from airflow_dagsched.launch.managers.webhdfs import parse_location
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking import Violation, check
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.provider.clusters.folder_listing import HDFS, TimelyLister
from airflow_dagsched.provider.clusters.spark_connection import (
    Reached,
    ask_live_cluster,
    read_declared_cluster,
    read_seconds,
    read_tolerations,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_dagsched.launch.managers.kubernetes.objects import Toleration
    from airflow_dagsched.provider.clusters.folder_listing import Opened

log = logging.getLogger(__name__)

EXECUTOR_WITHIN_S = 30.0

REMEDIES = {
    "spark": "start the Master, or set the connection's extra 'master_ui' to its address",
    "yarn": "set the connection's extra 'yarn_resourcemanager_webapp_address' to where the ResourceManager answers",
    "k8s": "the API server must answer, and let this Airflow worker list nodes",
}


class Planned(Protocol):
    """A task group that is planned: what authors make with ``SparkDataflow``."""

    @property
    def dataflow(self) -> Dataflow:
        """As the planner reads it."""

    @property
    def settings(self) -> Settings:
        """What the author set for the plan."""


class PlannerHook(BaseHook):
    """Reads the cluster of a ``spark`` connection, and plans dataflows for it.

    Extras of the connection say where to ask (:mod:`~airflow_dagsched.provider.clusters.spark_connection`), and what to
    plan for where nobody can be asked: ``cluster``, the path or the content of a cluster file. With
    ``if_unreachable`` set to ``declared`` that cluster, with a warning, also takes the place of a manager that
    doesn't answer.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "spark_default"
    conn_type = "spark"
    hook_name = "Spark planner"

    def __init__(self, conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.conn_id = conn_id
        self._known: tuple[Dataflow, Cluster, Settings] | None = None

    def check_connection(self, group: str) -> Connection:
        """The connection; raises :class:`LaunchRefused` where it is missing or no Spark connection."""
        try:
            connection = self.get_connection(self.conn_id)
        # The Spark provider's own hook falls back to YARN without a word.
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
        # The driver's output and its files are how it is followed: it has to run beside this worker.
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

    def cluster(self, declared: Cluster | None = None) -> Cluster:
        """The cluster as it is now: its live workers, those of ``declared`` if it is given.

        ``declared`` comes before the connection's own extra ``cluster``. Raises :class:`LaunchRefused` where the
        manager doesn't answer, can't be asked, or has no such worker.
        """
        reached = self._read_connection()
        declared = declared or read_declared_cluster(reached)
        try:
            live = ask_live_cluster(reached)
        except ClusterUnknown as error:
            return self._replace_unreachable(reached, declared, error)
        # A declared cluster says which of the live workers are ours, and stands in where nobody can be asked.
        found = live if declared is None else declared if live is None else merge_live_and_declared(live, declared)
        if found is None:
            raise LaunchRefused(
                self.conn_id, f"master {reached.master!r} can't be asked for its workers",
                "set the connection's extra 'yarn_resourcemanager_webapp_address' or 'cluster'",
            )  # fmt: skip
        # Passing: workers come back, and Airflow's retries are for that.
        if not any(worker.cores for worker in found.workers):
            raise LaunchRefused(
                self.conn_id, f"{reached.master!r} has no worker for us that is alive", "start one", passing=True
            )
        return found

    @property
    def executor_within_s(self) -> float:
        """The connection's extra: seconds an application may be without executors until it is asked why.

        Raises :class:`InvalidInput`.
        """
        return read_seconds(self._read_connection(), "executor_within_s", EXECUTOR_WITHIN_S)

    def tolerations(self) -> tuple[Toleration, ...]:
        """Of executors on Kubernetes: the connection's extra ``tolerations``."""
        return read_tolerations(self._read_connection())

    @contextmanager
    def listing(self, location: str) -> Iterator[Opened]:
        """The lister of the file system that ``location`` is on: an HDFS is asked by HTTP, also who holds blocks.

        Raises :class:`ClusterUnknown` where it doesn't answer in time, and so does its lister.
        """
        reached = self._read_connection()
        if not location.startswith(HDFS):
            yield TimelyLister.of(location, reached.answer_within_s)
            return
        from airflow_dagsched.provider.clusters.webhdfs import WebHdfsLister

        with WebHdfsLister.of(location, reached) as lister:
            yield lister, parse_location(location)[1]

    def plan(self, what: DAG | Planned | Dataflow, cluster: Cluster | None = None) -> Plan:
        """The plan for a dataflow, or for the only one of a DAG, on ``cluster`` (by default the live one)."""
        dataflow = extract_dataflow(what)
        where = cluster or self.cluster()
        # a live cluster changes: check() judges by what the plan was made for
        self._known = (dataflow, where, extract_settings(what))
        return plan(*self._known)

    def check(self, planned: Plan) -> tuple[Violation, ...]:
        """Violations of the plan this hook made last."""
        if self._known is None:
            raise ValueError("check() is for the plan this hook made: call plan() first")
        return check(planned, *self._known)

    def test_connection(self) -> tuple[bool, str]:
        """For the button in Airflow's connection form."""
        try:
            found = self.cluster()
        except DagschedError as error:
            return False, str(error)
        ours = [worker for worker in found.workers if worker.cores]
        cores = sum(worker.free_cores for worker in ours)
        return True, f"{found.manager}: {len(ours)} worker(s), {cores} cores free"

    def _read_connection(self) -> Reached:
        connection = self.check_connection(self.conn_id)
        return Reached(self.conn_id, self.master(), connection.password, connection.extra_dejson)

    def _replace_unreachable(self, reached: Reached, declared: Cluster | None, error: ClusterUnknown) -> Cluster:
        """The declared cluster in place of one that doesn't answer, if the connection says so."""
        if reached.extra.get("if_unreachable") == "declared" and declared is not None:
            log.warning("planned for the declared cluster: %s", error)
            return declared
        remedy = REMEDIES[reached.master.partition(":")[0]]
        raise LaunchRefused(self.conn_id, str(error), remedy, passing=True) from None


def extract_dataflow(what: DAG | Planned | Dataflow) -> Dataflow:
    """The planner's view of ``what``; raises ``ValueError`` for a DAG without, or with several, dataflows."""
    return what if isinstance(what, Dataflow) else _find_flow(what).dataflow


def extract_settings(what: DAG | Planned | Dataflow) -> Settings:
    """What the author set for its plan; raises as ``extract_dataflow``."""
    return DEFAULTS if isinstance(what, Dataflow) else _find_flow(what).settings


def _find_flow(what: DAG | Planned) -> Planned:
    if not isinstance(what, DAG):
        return what
    flows = list(list_dataflows(what))
    if len(flows) != 1:
        raise ValueError(f"DAG {what.dag_id!r} has {len(flows)} dataflows: pass one of them")
    return flows[0]


def list_dataflows(dag: DAG) -> Iterator[Planned]:
    """The dataflows of a DAG: its task groups that have one."""
    # Not by ``task_group_dict``, which keeps what it finds when first read, perhaps before the DAG is complete.
    groups: dict[str, Any] = dag.task_group.get_task_group_dict()
    for group in groups.values():
        if hasattr(type(group), "dataflow"):  # of the class: the group's own would already read its DAG
            yield group
