"""YARN: what the ResourceManager's REST answers about nodes and queues, as a cluster.

``GET /ws/v1/cluster/nodes`` and ``GET /ws/v1/cluster/scheduler`` (Hadoop: "ResourceManager REST APIs").

The application master of a Spark application may come up on any node: room for it is left on each. And what
is free on the nodes beyond the room that is left in the queue is not ours to ask for; the roomiest come first::

    free on nodes   8 8 8      left in the queue: 12 cores      ->   8 4 0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.launch.managers.answer import Answer, read_answer
from airflow_dagsched.launch.managers.yarn.queues import SchedulerAnswer, find_room
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.model.order import natural_key

MASTER_CORES = 1
MASTER_MEMORY_MB = 1024
"""Of the application master in client mode: Spark's 512 MiB and 384 of overhead, as YARN rounds them up."""
LABEL = "label"
"""Tag of a worker: the node label it has, which an executor must ask for to come there."""


class Where(NamedTuple):
    """The part of a YARN cluster that a connection means."""

    queue: str = "default"
    label: str = ""
    """Only nodes with this label; empty: only those without one."""


ANYWHERE = Where()

_NODE_FIELDS = {
    "host": "nodeHostName",
    "used_mb": "usedMemoryMB",
    "free_mb": "availMemoryMB",
    "used_cores": "usedVirtualCores",
    "free_cores": "availableVirtualCores",
    "labels": "nodeLabels",
}


class Node(Answer, frozen=True, rename=_NODE_FIELDS):
    """A NodeManager."""

    id: str
    state: str
    host: str
    used_mb: int
    free_mb: int
    used_cores: int
    free_cores: int
    rack: str | None = None
    labels: tuple[str, ...] | None = None

    def is_for(self, where: Where) -> bool:
        """Whether its containers may be ours."""
        # The first alone: YARN gives a node one label.
        return self.state == "RUNNING" and where.label == "".join((self.labels or ("",))[:1])


class Nodes(Answer, frozen=True):
    """The list of nodes; None where there is none."""

    node: tuple[Node, ...] | None = None


class NodesAnswer(Answer, frozen=True):
    """Of ``/ws/v1/cluster/nodes``. Without nodes older ResourceManagers write null, or an empty text."""

    nodes: Nodes | Literal[""] | None


def read_yarn_cluster(nodes: bytes, scheduler: bytes, asked: str, where: Where = ANYWHERE) -> Cluster:
    """Nodes that run and are for ``where``, with what is free on them and in the queue.

    Raises ``ClusterUnknown`` for what is no such answer, and for a queue that is not there.
    """
    found = read_answer(NodesAnswer, nodes, asked).nodes or Nodes()
    ours = [node for node in found.node or () if node.is_for(where)]
    hosts = [node.host for node in ours]
    workers = [_read_worker(node, alone=hosts.count(node.host) == 1) for node in ours]
    queues = read_answer(SchedulerAnswer, scheduler, asked).scheduler.info
    offered = (sum(worker.cores for worker in workers), sum(worker.memory_mb for worker in workers))
    room = find_room(queues, where.queue, where.label, offered)
    # A FIFO scheduler has no queues, and takes what is meant for the default one.
    if room is None and where.queue != ANYWHERE.queue:
        raise ClusterUnknown(asked, f"there is no queue {where.queue!r}")
    workers = _reserve_master(workers) if room is None else _limit_to_queue(_reserve_master(workers), *room)
    return Cluster(manager="yarn", workers=tuple(sorted(workers, key=lambda worker: natural_key(worker.id))))


def _read_worker(node: Node, *, alone: bool) -> Worker:
    label = "".join((node.labels or ("",))[:1])
    return Worker(
        id=node.host if alone else node.id,
        host=node.host,
        rack=node.rack,
        tags={LABEL: label} if label else {},
        cores=node.used_cores + node.free_cores,
        memory_mb=node.used_mb + node.free_mb,
        free=Free(cores=max(0, node.free_cores), memory_mb=max(0, node.free_mb)),
    )


def _reserve_master(workers: Sequence[Worker]) -> list[Worker]:
    """The workers, each with room for the application master taken away, from what is free and from all it has."""
    return [
        replace(
            worker,
            cores=max(0, worker.cores - MASTER_CORES),
            memory_mb=max(0, worker.memory_mb - MASTER_MEMORY_MB),
            free=Free(
                cores=max(0, worker.free_cores - MASTER_CORES),
                memory_mb=max(0, worker.free_memory_mb - MASTER_MEMORY_MB),
            ),
        )
        for worker in workers
    ]


def _limit_to_queue(workers: Sequence[Worker], cores: int, memory_mb: int) -> list[Worker]:
    """The workers, what is free on all of them together cut down to the room in the queue, less the master's."""
    # The master is one container of the application, wherever it comes up: the queue pays for it once.
    cores, memory_mb = max(0, cores - MASTER_CORES), max(0, memory_mb - MASTER_MEMORY_MB)
    cut = []
    for worker in sorted(workers, key=lambda worker: (-worker.free_cores, natural_key(worker.id))):
        free = Free(cores=min(cores, worker.free_cores), memory_mb=min(memory_mb, worker.free_memory_mb))
        cut.append(replace(worker, free=free))
        cores, memory_mb = cores - (free.cores or 0), memory_mb - (free.memory_mb or 0)
    return cut
