"""First fit: workers with room for containers of one shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.plan.costing.demand import Demand

ContainerSize = tuple[int, int, int]
"""Cores, memory (MiB, with padding) and disk (MiB) of each container."""


def choose_workers(
    demand: Demand, workers: Sequence[Worker], size: ContainerSize | None, count: int
) -> tuple[Worker, ...]:
    """Up to ``count`` workers, one for each container, in the order given; shape None: one container a worker.

    Every pinned step has one of its workers among them: that may take more than ``count``. Empty: no room.
    """
    taken = [0] * len(workers)
    for step in (step for step in demand.steps if step.pinned):
        allowed = [at for at, worker in enumerate(workers) if worker.id in step.pinned]
        # One container may serve several pinned steps: only a step without any takes another.
        if not any(taken[at] for at in allowed):
            first = next((at for at in allowed if _count_copies(workers[at], size)), None)
            if first is None:
                return ()
            taken[first] = 1
    # Below zero where pinned steps took more: that stays.
    left = count - sum(taken)
    for at in _list_allowed(demand, workers):
        if left <= 0:
            break
        more = min(_count_copies(workers[at], size) - taken[at], left)
        taken[at] += more
        left -= more
    return tuple(worker for at, worker in enumerate(workers) for _ in range(taken[at]))


def _count_copies(worker: Worker, size: ContainerSize | None) -> int:
    if size is None:
        return 1
    cores, memory, disk = size
    # 0 MiB: a cluster that tells no memory.
    copies = min(worker.free_cores // cores, worker.free_memory_mb // max(1, memory))
    return copies if worker.free_disk_mb is None or not disk else min(copies, worker.free_disk_mb // disk)


def _list_allowed(demand: Demand, workers: Sequence[Worker]) -> list[int]:
    """Workers that some step of the group may use."""
    if any(not step.pinned for step in demand.steps):
        return list(range(len(workers)))
    # A container on any other worker would get no instance.
    pinned = {worker for step in demand.steps for worker in step.pinned}
    return [at for at, worker in enumerate(workers) if worker.id in pinned]


def select_roomy(demand: Demand, workers: Sequence[Worker], count: int) -> list[Worker]:
    """Workers that could hold one of ``count`` equal shares of all resident instances."""
    cores = math.ceil(sum(s.parallelism * n.cores for s, n in zip(demand.steps, demand.needs, strict=True)) / count)
    memory = math.ceil(sum_resident_memory(demand) / count)
    # Equal containers are as large as the fullest share, which has the mean at least: smaller workers are no use.
    return [w for w in workers if w.free_cores >= cores and w.free_memory_mb >= memory]


def sum_resident_memory(demand: Demand) -> int:
    """MiB, without padding, of all instances together."""
    return sum(s.parallelism * n.memory_mb for s, n in zip(demand.steps, demand.needs, strict=True))
