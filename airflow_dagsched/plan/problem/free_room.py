"""What is free on the workers, summed up once: there may be 10,000 of them, and each group of a search asks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from airflow_dagsched.model.cluster import Worker


class FreeRoom(Struct, frozen=True):
    """Of all workers together."""

    cores: int
    memory_mb: int
    most_cores: int
    """Of one worker."""
    has_disk_limits: bool
    """Whether the disk of some worker has a limit."""

    @classmethod
    def of(cls, workers: Sequence[Worker]) -> FreeRoom:
        """What is free on these."""
        cores = [worker.free_cores for worker in workers]
        memory_mb = sum([worker.free_memory_mb for worker in workers])
        return cls(sum(cores), memory_mb, max(cores, default=0), has_disk_limits(workers))


def has_disk_limits(workers: Sequence[Worker]) -> bool:
    """Whether the disk of some of these has a limit."""
    return any(worker.free_disk_mb is not None for worker in workers)
