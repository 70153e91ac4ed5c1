"""First fit: workers with room for containers of one shape.

Where the workers' disks have limits, what each container is dealt decides where it may be:

    w1  8 cores, 10 MiB of disk      one instance of 100 MiB: w1 has the cores, w2 the disk, so it goes to w2;
    w2  4 cores, no limit            12 of 100 MiB on 12 cores: as many containers as w2 has room for

More containers have less each, so limits hold their number from both sides: up, until the largest share fits
somewhere; down, as long as there are more of them than places that hold such a share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.plan.costing.demand import Demand, Share, deal_instances
from airflow_dagsched.plan.problem.free_room import has_disk_limits

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
    missing = count - sum(taken)
    for at in _list_allowed(demand, workers):
        if missing <= 0:
            break
        more = min(_count_copies(workers[at], size) - taken[at], missing)
        taken[at] += more
        missing -= more
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


def choose_with_disk(
    demand: Demand, workers: Sequence[Worker], size: tuple[int, int], count: int, most: int
) -> tuple[Worker, ...]:
    """A worker for each of ``count`` containers, fewer or up to ``most`` if disk is short; where it does not suffice
    for any number, those that have the cores and the memory.

    :param size: cores and memory (MiB, padding included) of each.
    """
    chosen = choose_workers(demand, workers, (*size, 0), count)
    if not is_disk_short(demand, chosen):
        return chosen
    while not (found := _choose_fewer(demand, workers, size, count)) and count < most:
        # Doubled, not counted up: with disk scarce there may be as many containers as instances.
        count = min(most, 2 * count)
    return found or chosen


def is_disk_short(demand: Demand, chosen: Sequence[Worker]) -> bool:
    """Whether a worker has less than the instances dealt to its containers take."""
    return has_disk_limits(chosen) and find_first_short(chosen, _deal(demand, chosen)) is not None


def find_first_short(places: Sequence[Worker], shares: Sequence[Share]) -> tuple[Worker, int] | None:
    """The first worker with less disk than its containers hold, and the MiB they need."""
    needed: dict[str, int] = {}
    for worker, share in zip(places, shares, strict=False):
        needed[worker.id] = needed.get(worker.id, 0) + share.disk_mb
        # All containers of the worker share its disk, so its sum is told, not what the first too many needs.
        if worker.free_disk_mb is not None and needed[worker.id] > worker.free_disk_mb:
            return worker, sum(one.disk_mb for at, one in zip(places, shares, strict=True) if at is worker)
    return None


def _choose_fewer(demand: Demand, workers: Sequence[Worker], size: tuple[int, int], count: int) -> tuple[Worker, ...]:
    """The most containers, up to ``count``, whose shares the disks hold; none if there is no such number."""
    loose = demand.drop_pins()
    while count:
        largest = max(share.disk_mb for share in deal_instances(loose, [""] * count))
        found = choose_workers(demand, workers, (*size, largest), count)
        # Fewer places than containers: then each has more, so there may be fewer places again.
        if len(found) >= count or not found:
            return _leave_out_short(demand, workers, (*size, largest), found)
        count = len(found)
    return ()


def _leave_out_short(
    demand: Demand, workers: Sequence[Worker], size: tuple[int, int, int], found: tuple[Worker, ...]
) -> tuple[Worker, ...]:
    """``found``; where what is pinned gives a worker more than an even share, others in its place."""
    others = workers
    while found and (short := find_first_short(found, _deal(demand, found))):
        others = [worker for worker in others if worker is not short[0]]
        found = choose_workers(demand, others, size, len(found))
    return found


def _deal(demand: Demand, chosen: Sequence[Worker]) -> list[Share]:
    return deal_instances(demand, [worker.id for worker in chosen])
