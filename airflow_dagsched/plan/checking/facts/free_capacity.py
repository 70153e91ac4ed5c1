"""What is free on the workers, and what groups take of it."""

from __future__ import annotations

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.plan_types import Group

Amounts = tuple[int, int, int]
"""Cores, memory and disk."""
DIMENSIONS = ("cores", "memory_mb", "disk_mb")
Holding = list[tuple[str, Amounts]]
"""Worker and amounts of each container, and of a driver program that is on a worker."""
Free = dict[str, list[int]]
"""What is left on each worker, in the order of ``DIMENSIONS``."""
UNLIMITED = 2**62  # MiB of a disk without a limit: sums of it stay below what any plan takes


APPLICATIONS = ""
"""In place of a worker, of which none is called so: how many groups may run side by side, where that is limited."""


def measure_free(cluster: Cluster, applications: int = 0) -> Free:
    """Of the workers before anything is launched. ``applications``: side by side, at most; 0: any number."""
    limit = {APPLICATIONS: [applications, UNLIMITED, UNLIMITED]} if applications else {}
    return limit | {
        worker.id: [
            worker.free_cores,
            worker.free_memory_mb,
            UNLIMITED if worker.free_disk_mb is None else worker.free_disk_mb,
        ]
        for worker in cluster.workers
    }


def list_holdings(group: Group) -> Holding:
    """From the start of the group to its end."""
    held = [(APPLICATIONS, (1, 0, 0))] if group.containers else []
    held += [
        (container.worker, (container.cores, container.memory_mb, container.disk_mb)) for container in group.containers
    ]
    driver = group.driver
    if driver.worker is not None:
        # A driver without a worker runs where it is submitted from: that takes nothing of the cluster.
        held.append((driver.worker, (driver.cores, driver.memory_mb, 0)))
    return held


def take_capacity(free: Free, held: Holding) -> bool:
    """Whether there was room for it; what is on workers that are not there takes nothing."""
    fits = True
    for where, (cores, memory, disk) in held:
        amounts = free.get(where)
        # Else the worker is unknown, which ``check_capacity`` says: one violation for one fault.
        if amounts is not None:
            amounts[0] -= cores
            amounts[1] -= memory
            amounts[2] -= disk
            fits = fits and amounts[0] >= 0 and amounts[1] >= 0 and amounts[2] >= 0
    return fits


def return_capacity(free: Free, held: Holding) -> None:
    """What was taken."""
    for where, (cores, memory, disk) in held:
        amounts = free.get(where)
        if amounts is not None:
            amounts[0] += cores
            amounts[1] += memory
            amounts[2] += disk
