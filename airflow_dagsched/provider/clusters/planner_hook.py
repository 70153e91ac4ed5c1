"""``PlannerHook``: the cluster behind an Airflow Spark connection, and plans for it."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk import DAG, BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from msgspec.structs import replace

from airflow_dagsched.errors import ClusterUnknown, DagschedError, LaunchRefused
from airflow_dagsched.launch.escalation.fit_to_free_cluster import drop_dead_pins
from airflow_dagsched.launch.escalation.plan_launches import plan_launches
from airflow_dagsched.launch.escalation.reservations import add_back
from airflow_dagsched.launch.managers.declared import merge_live_and_declared
from airflow_dagsched.launch.managers.webhdfs import parse_location
from airflow_dagsched.launch.planning.facts import Facts, Origin
from airflow_dagsched.launch.planning.planned import Planned
from airflow_dagsched.launch.planning.submissions import add_settings
from airflow_dagsched.model.cluster import Cluster, make_idle
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking import Violation, check
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.provider.clusters.folder_listing import HDFS, TimelyLister
from airflow_dagsched.provider.clusters.plan_facts import FoundCluster, gather_plan_facts, runs_per_step
from airflow_dagsched.provider.clusters.spark_connection import (
    Reached,
    ask_live_cluster,
    read_declared_cluster,
    read_seconds,
    read_tolerations,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_dagsched.launch.managers.executors import Executors
    from airflow_dagsched.launch.managers.kubernetes.objects import Toleration
    from airflow_dagsched.provider.clusters.folder_listing import Opened
    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec

log = logging.getLogger(__name__)

EXECUTOR_WITHIN_S = 30.0

REMEDIES = {
    "spark": "start the Master, or set the connection's extra 'master_ui' to its address",
    "yarn": "set the connection's extra 'yarn_resourcemanager_webapp_address' to where the ResourceManager answers",
    "k8s": "the API server must answer, and let this Airflow worker list nodes",
}


class Wired(Protocol):
    """A task group that is planned: what authors make with ``SparkDataflow``."""

    @property
    def dataflow(self) -> Dataflow:
        """As the planner reads it."""

    def launches(self) -> tuple[Any, ...]:
        """Its launch tasks; none before its ``with`` block has ended."""


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

    def __init__(self, conn_id: str = default_conn_name, history: Path | None = None) -> None:
        super().__init__()
        self.conn_id = conn_id
        self.history = history
        """File of the history to plan by; None: the dataflow's, as it is now."""
        self.leaving: Executors | None = None
        """Executors that are gone before what is planned comes: their room counts as free."""
        self._known: Planned | None = None

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
        return self.find_cluster(declared).cluster

    def find_cluster(self, declared: Cluster | None = None, *, live: bool = True) -> FoundCluster:
        """The cluster as it is now, and whether its manager says so; raises as :meth:`cluster`.

        Not ``live``: all of its workers' room, and those that are declared, if they are, without asking anybody.
        """
        reached = self._read_connection()
        declared = declared or read_declared_cluster(reached)
        if not live and declared is not None:
            return FoundCluster(make_idle(declared), "declared", "whole")
        found = self._ask_cluster(reached, declared)
        if not live:
            return replace(found, cluster=make_idle(found.cluster), room="whole")
        return found if self.leaving is None else replace(found, cluster=add_back(found.cluster, self.leaving))

    def _ask_cluster(self, reached: Reached, declared: Cluster | None) -> FoundCluster:
        try:
            live = ask_live_cluster(reached)
        except ClusterUnknown as error:
            return FoundCluster(self._replace_unreachable(reached, declared, error), "declared", "free")
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
        return FoundCluster(found, "declared" if live is None else "live", "free")

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

    def plan(self, what: DAG | Wired | Dataflow, cluster: Cluster | None = None) -> Plan:
        """The plan that launches of a dataflow, or of the only one of a DAG, follow on ``cluster``.

        By default on the live one, those workers of it that the dataflow declares. Of a bare ``Dataflow`` the planner
        chooses the groups.
        """
        # A live cluster changes: check() judges by what the plan was made for.
        self._known = plan_launches(self.gather_facts(what, cluster))
        return add_settings(self._known)

    def gather_facts(
        self,
        what: DAG | Wired | Dataflow,
        cluster: Cluster | None = None,
        *,
        live: bool = True,
        asked: str | None = None,
    ) -> Facts:
        """What a run of it would be planned with, began it now; not ``live``: on all of its workers' room.

        :param asked: how the run's own configuration says it is submitted, if it does.
        """
        launch = None if isinstance(what, Dataflow) else _find_launch(what)
        declared = launch.flow.declared_cluster if launch is not None else None
        given = FoundCluster(cluster, "declared", "free") if cluster is not None else None
        found = given or self.find_cluster(declared, live=live)
        if launch is not None:
            per_step = runs_per_step(launch.flow, asked)
            facts = gather_plan_facts(launch, found, self.conn_id, per_step=per_step, history=self.history)
            # As a launch does: what is pinned to workers that are gone goes anywhere.
            return drop_dead_pins(facts, ())[0]
        assert isinstance(what, Dataflow)
        origin = Origin(cluster=found.origin, room=found.room)
        return Facts(dataflow=what, cluster=found.cluster, connection=self.conn_id, origin=origin)

    def check(self, planned: Plan) -> tuple[Violation, ...]:
        """Violations of the plan this hook made last."""
        if self._known is None:
            raise ValueError("check() is for the plan this hook made: call plan() first")
        return check(planned, self._known.dataflow, self._known.cluster, self._known.settings)

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


def _find_launch(what: DAG | Wired) -> LaunchSpec:
    """The first launch task, which knows of all; raises ``ValueError`` where there is none, or are several flows'."""
    flow = _find_flow(what) if isinstance(what, DAG) else what
    launches = flow.launches()
    if not launches:
        raise ValueError("the dataflow has no launch task yet: plan it after its with block")
    return launches[0].spec  # type: ignore[no-any-return]


def _find_flow(dag: DAG) -> Wired:
    flows = list(list_dataflows(dag))
    if len(flows) != 1:
        raise ValueError(f"DAG {dag.dag_id!r} has {len(flows)} dataflows: pass one of them")
    return flows[0]


def list_dataflows(dag: DAG) -> Iterator[Wired]:
    """The dataflows of a DAG: its task groups that have one."""
    # Not by ``task_group_dict``, which keeps what it finds when first read, perhaps before the DAG is complete.
    groups: dict[str, Any] = dag.task_group.get_task_group_dict()
    for group in groups.values():
        if hasattr(type(group), "dataflow"):  # of the class: the group's own would already read its DAG
            yield group
