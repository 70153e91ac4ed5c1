"""What launches that have just planned are about to take, before their cluster manager knows of it.

::

    launch A   plans: w1 4 cores ── reserves ── submits ........ has started: the manager counts it ── lets go
    launch B                                plans: w1 is taken, asks for what is free beside it

A reservation is short: from the plan to the start of the application. It ends by itself, so a launch that
died holds nobody up.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from airflow_dagsched.launch.managers.executors import Executors
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.ranges import Cores, Declared, Id, MiB, Quantity

FOR_START_S = 120.0
"""An application that has not started by then may find that its cores are taken: it waits, or runs with fewer."""
SETTLE_S = 5.0
"""After the start: executors on YARN and Kubernetes are granted a moment later than they are asked for."""


class Reservation(Declared, frozen=True, kw_only=True):
    """Cores and memory of some workers, until ``expires``."""

    id: Id
    expires: Quantity
    """Seconds since 1970."""
    cores: dict[str, Cores]
    memory_mb: dict[str, MiB]


def reserve_executors(name: str, asked: Executors, expires: float) -> Reservation:
    """For the executors of one application."""
    return Reservation(
        id=name,
        expires=expires,
        cores={worker: count * asked.cores for worker, count in asked.on.items()},
        memory_mb={worker: count * asked.memory_mb for worker, count in asked.on.items()},
    )


def subtract_reservations(cluster: Cluster, reservations: Iterable[Reservation]) -> Cluster:
    """The cluster, less free on its workers by what is reserved."""
    held = tuple(reservations)
    return replace(cluster, workers=tuple(_reduce_free(worker, held) for worker in cluster.workers))


def add_back(cluster: Cluster, held: Executors) -> Cluster:
    """The cluster with what these executors have counted as free: by then they are gone."""
    return replace(cluster, workers=tuple(_enlarge_free(worker, held) for worker in cluster.workers))


def _enlarge_free(worker: Worker, held: Executors) -> Worker:
    count = held.on.get(worker.id, 0)
    # Not above what there is: some of them may be gone already.
    cores = min(worker.cores, worker.free_cores + count * held.cores)
    memory = min(worker.memory_mb, worker.free_memory_mb + count * held.memory_mb)
    return replace(worker, free=replace(worker.free, cores=cores, memory_mb=memory))


def _reduce_free(worker: Worker, held: Iterable[Reservation]) -> Worker:
    cores = sum(one.cores.get(worker.id, 0) for one in held)
    memory = sum(one.memory_mb.get(worker.id, 0) for one in held)
    # Not below zero: once an application has started, its manager counts it too, a moment before its reservation goes.
    free = {"cores": max(0, worker.free_cores - cores), "memory_mb": max(0, worker.free_memory_mb - memory)}
    return replace(worker, free=replace(worker.free, **free))
