"""Spark's own Master: the answer of its web page ``/json/`` as a cluster.

::

    spark://a:7077,b:7077          a: STANDBY   (asked, passed over)
                                   b: ALIVE ──> its workers that are ALIVE; dead and decommissioned ones are out

A worker is called after its host, since the Master gives it a new id whenever it starts; where several
share a host, after host and port.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal
from urllib.parse import urlsplit

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.launch.managers.answer import Answer, read_answer
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.model.order import natural_key
from airflow_dagsched.plan.passes.pin_hosts import is_token

MASTER_PORT = 7077


class Addresses(Answer, frozen=True, rename=None):
    """Of one custom resource: each address is one piece of it."""

    addresses: tuple[str, ...] = ()


class LiveWorker(Answer, frozen=True, rename=None):
    """A worker as the Master sees it. Memory in MiB."""

    host: str
    port: int
    state: str
    cores: int
    coresfree: int
    memory: int
    memoryfree: int
    resources: dict[str, Addresses] = {}
    resourcesfree: dict[str, Addresses] = {}


class MasterState(Answer, frozen=True, rename=None):
    """What ``/json/`` answers."""

    status: Literal["ALIVE", "STANDBY", "RECOVERING", "COMPLETING_RECOVERY"]
    workers: tuple[LiveWorker, ...] = ()


def list_masters(url: str) -> tuple[str, ...]:
    """Host and port of each Master in ``spark://host[:port],host[:port]``."""
    hosts = urlsplit(url).netloc.split(",")
    return tuple(host if ":" in host else f"{host}:{MASTER_PORT}" for host in hosts if host)


def read_standalone_cluster(content: bytes, asked: str) -> Cluster:
    """The workers of the Master that leads; raises ``ClusterUnknown``, also where this Master does not lead."""
    state = read_answer(MasterState, content, asked)
    if state.status != "ALIVE":
        raise ClusterUnknown(asked, f"this Master is {state.status}")
    alive = [worker for worker in state.workers if worker.state == "ALIVE"]
    # Of those alive alone: a dead worker stays in the list for a while beside the one that took its place.
    on_host = Counter(worker.host for worker in alive)
    workers = (_read_worker(one, alone=on_host[one.host] == 1) for one in alive)
    return Cluster(manager="standalone", workers=tuple(sorted(workers, key=lambda one: natural_key(one.id))))


def _read_worker(live: LiveWorker, *, alone: bool) -> Worker:
    offered = {name: len(found.addresses) for name, found in live.resources.items()}
    free = {name: len(found.addresses) for name, found in live.resourcesfree.items()}
    return Worker(
        id=live.host if alone else f"{live.host}:{live.port}",
        host=live.host,
        cores=live.cores,
        memory_mb=live.memory,
        resources=offered,
        free=Free(cores=max(0, live.coresfree), memory_mb=max(0, live.memoryfree), resources=free),
        tokens=tuple(sorted((name for name in offered if is_token(name)), key=natural_key)),
    )
