"""What is free on the workers, and what groups take of it."""

from __future__ import annotations

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.values import Group

Amounts = tuple[int, int, int]
"""Cores, memory and disk."""
DIMENSIONS = ("cores", "memory_mb", "disk_mb")
Held = list[tuple[str, Amounts]]
"""Worker and amounts of each container, and of a driver program that is on a worker."""
Free = dict[str, list[int]]
"""What is left on each worker, in the order of ``DIMENSIONS``."""
UNLIMITED = 2**62


def room_of(cluster: Cluster) -> Free:
    """Of the workers as they are before anything is launched."""
    return {
        worker.id: [
            worker.free_cores,
            worker.free_memory_mb,
            UNLIMITED if worker.free_disk_mb is None else worker.free_disk_mb,
        ]
        for worker in cluster.workers
    }


def held_by(group: Group) -> Held:
    """From the start of the group to its end."""
    held = [(box.worker, (box.cores, box.memory_mb, box.disk_mb)) for box in group.containers]
    driver = group.driver
    if driver.worker is not None:
        held.append((driver.worker, (driver.cores, driver.memory_mb, 0)))
    return held


def take(free: Free, held: Held) -> bool:
    """Whether there was room for it; what is on workers that are not there takes nothing."""
    fits = True
    for where, (cores, memory, disk) in held:
        room = free.get(where)
        if room is not None:
            room[0] -= cores
            room[1] -= memory
            room[2] -= disk
            fits = fits and room[0] >= 0 and room[1] >= 0 and room[2] >= 0
    return fits


def give_back(free: Free, held: Held) -> None:
    """What was taken."""
    for where, (cores, memory, disk) in held:
        room = free.get(where)
        if room is not None:
            room[0] += cores
            room[1] += memory
            room[2] += disk
