"""A group on YARN: all nodes but the planned ones are excluded from the application, or a label is asked for."""

from __future__ import annotations

from airflow_dagsched.launch.managers.executors import Executors, Submission, name_sizes
from airflow_dagsched.launch.managers.yarn.live import LABEL
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.order import sort_naturally


def make_yarn_submission(asked: Executors, cluster: Cluster, *, exact: bool) -> Submission:
    """``exact``: on the planned nodes only; else on any of the cluster's."""
    excluded = list_excluded_nodes(asked, cluster) if exact else ()
    labels = {worker.tags.get(LABEL, "") for worker in cluster.workers if worker.id in asked.on}
    # There is one expression for all executors: of several labels none is asked for.
    label = labels.pop() if len(labels) == 1 else ""
    return Submission(
        {
            **name_sizes(asked),
            **({"spark.yarn.exclude.nodes": ",".join(excluded)} if excluded else {}),
            **({"spark.yarn.executor.nodeLabelExpression": label} if label else {}),
        }
    )


def list_excluded_nodes(asked: Executors, cluster: Cluster) -> tuple[str, ...]:
    """Hosts of live nodes without a planned executor. Never all: a planned host is not among them.

    Only live ones, since Spark counts stale names too, and fails the application once the names are as many
    as the nodes.
    """
    chosen = {worker.host for worker in cluster.workers if worker.id in asked.on}
    return tuple(sort_naturally({worker.host for worker in cluster.workers} - chosen))
