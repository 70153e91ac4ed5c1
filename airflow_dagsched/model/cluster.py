"""The cluster: the hosts that can run executors, and what is free on them."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from airflow_dagsched.model.ranges import Cores, Declared, Id, MiB, Positive, Quantity, Seconds


class Free(Declared, frozen=True, kw_only=True):
    """What is free of a worker's resources just now; None: all of it."""

    cores: Cores | None = None
    memory_mb: MiB | None = None
    disk_mb: MiB | None = None
    resources: dict[str, Cores] | None = None
    """Custom resources, by name."""


class Worker(Declared, frozen=True, kw_only=True):
    """A host of the cluster, with all it offers."""

    id: Id
    host: str
    rack: str | None = None
    tags: dict[str, str] = {}
    cores: Cores
    memory_mb: MiB
    disk_mb: MiB | None = None
    """None: no limit known."""
    resources: dict[str, Cores] = {}
    """Custom resources such as ``gpu``, by name."""
    free: Free = Free()
    tokens: tuple[str, ...] = ()
    """Custom resources that choose workers: each executor takes one of every token it asks for."""
    cost: Quantity = 1.0
    """Per core-second."""
    bandwidth_mb_s: Positive | None = None
    latency_s: Seconds | None = None

    @property
    def free_cores(self) -> int:
        """Never more than it has, whatever the manager says."""
        return _take_least(self.cores, self.free.cores)

    @property
    def free_memory_mb(self) -> int:
        """MiB, never more than it has."""
        return _take_least(self.memory_mb, self.free.memory_mb)

    @property
    def free_disk_mb(self) -> int | None:
        """None: no limit known."""
        if self.disk_mb is None:
            return self.free.disk_mb
        return _take_least(self.disk_mb, self.free.disk_mb)


class Cluster(Declared, frozen=True, kw_only=True):
    """The workers a plan may use, and what starting and spilling cost there."""

    version: Literal[1] = 1
    manager: Literal["local", "standalone", "yarn", "kubernetes"]
    workers: tuple[Worker, ...] = ()
    application_start_s: Seconds = 8.0
    warm_start_s: Seconds = 1.0
    """The same, of a group that goes on in an application that is warm."""
    spill_mb_s: Positive = 200.0
    """MiB a second at which a spill is written, or read."""
    spill_mb: MiB | None = None
    """Room for spills; None: no limit known."""


def make_idle(cluster: Cluster) -> Cluster:
    """The cluster as it will be once nobody else is on it."""
    return replace(cluster, workers=tuple(replace(worker, free=Free()) for worker in cluster.workers))


def _take_least(offered: int, free: int | None) -> int:
    return offered if free is None else min(offered, free)
