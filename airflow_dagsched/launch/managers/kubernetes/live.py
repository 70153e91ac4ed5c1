"""Kubernetes: what the API server answers about nodes and pods, as a cluster.

``GET /api/v1/nodes`` and ``GET /api/v1/pods``. A node counts if it is ready, takes pods, and has no taint that
keeps an executor off; free on it is what is allocatable less what the pods on it request (as the
Kubernetes scheduler reckons: "Resource Management for Pods and Containers"). A node takes only so many pods: where
all its places are taken nothing is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.launch.managers.answer import read_answer
from airflow_dagsched.launch.managers.kubernetes.objects import (
    Node,
    NodeList,
    Pod,
    PodList,
    PodSpec,
    Toleration,
    read_amount,
)
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.model.order import natural_key
from airflow_dagsched.model.units import MIB

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
KNOWN = ("cpu", "memory", "ephemeral-storage", "pods")
"""Resources with a field of their own, or none; others are custom ones."""


def read_kubernetes_cluster(
    nodes: bytes, pods: bytes | None, asked: str, tolerations: Sequence[Toleration] = ()
) -> Cluster:
    """Nodes that take executors with these ``tolerations``, and what is free on them.

    ``pods`` None: we may not see them, then all that is allocatable counts as free. Raises ``ClusterUnknown``.
    """
    found = read_answer(NodeList, nodes, asked)
    running = _group_by_node(read_answer(PodList, pods, asked).items) if pods is not None else {}
    ours = [node for node in found.items if node.may_run_executors(tolerations)]
    try:
        workers = [_read_worker(node, running.get(node.metadata.name, [])) for node in ours]
    except ValueError as error:
        raise ClusterUnknown(asked, str(error)) from None
    return Cluster(manager="kubernetes", workers=tuple(sorted(workers, key=lambda worker: natural_key(worker.id))))


def _group_by_node(pods: Iterable[Pod]) -> Mapping[str, list[PodSpec]]:
    """Pods that hold resources, by node."""
    found: dict[str, list[PodSpec]] = {}
    for pod in pods:
        # A pod that ended still names its node, and holds nothing of it; one without a node waits to be scheduled.
        if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"):
            found.setdefault(pod.spec.node_name, []).append(pod.spec)
    return found


def _read_worker(node: Node, pods: Sequence[PodSpec]) -> Worker:
    offered, labels = node.status.allocatable, node.metadata.labels or {}
    # A node takes only so many pods, whatever cores are free (110 by default).
    takes_more = "pods" not in offered or len(pods) < read_amount(offered, "pods")

    def free(resource: str, unit: int = 1) -> int:
        left = read_amount(offered, resource) - sum(pod.sum_requests(resource) for pod in pods)
        return max(0, int(left / unit)) if takes_more else 0

    # Huge pages are memory set aside in another form, no device that an executor could ask for.
    custom = [name for name in offered if name not in KNOWN and not name.startswith("hugepages-")]
    return Worker(
        id=node.metadata.name,
        host=labels.get(HOSTNAME, node.metadata.name),
        rack=labels.get(ZONE),
        tags=dict(sorted(labels.items())),
        cores=int(read_amount(offered, "cpu")),
        memory_mb=int(read_amount(offered, "memory") / MIB),
        disk_mb=int(read_amount(offered, "ephemeral-storage") / MIB) if "ephemeral-storage" in offered else None,
        resources={name: int(read_amount(offered, name)) for name in sorted(custom)},
        free=Free(
            cores=free("cpu"),
            memory_mb=free("memory", MIB),
            disk_mb=free("ephemeral-storage", MIB) if "ephemeral-storage" in offered else None,
            resources={name: free(name) for name in sorted(custom)} or None,
        ),
    )
