"""``local``, ``local[n]``, ``local[*]``: this machine as the only worker."""

from __future__ import annotations

import re

from airflow_dagsched.model.cluster import Cluster, Worker

# The second number of ``local[n,m]`` is how often a task may fail.
MASTER = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
MEMORY_SHARE = 0.75
"""Of the machine's memory: the rest is for Airflow and Python workers."""


def is_local(master: str) -> bool:
    """Whether driver and executor are one process."""
    return MASTER.fullmatch(master) is not None


def make_local_cluster(master: str, cores: int, memory_mb: int) -> Cluster:
    """``master`` on a machine of ``cores`` and ``memory_mb`` (MiB); raises ``ValueError`` for no local master."""
    match = MASTER.fullmatch(master)
    if match is None:
        raise ValueError(f"{master!r} is no local master")
    threads = cores if match[1] == "*" else int(match[1] or 1)  # plain ``local`` is one thread
    here = Worker(id="local", host="localhost", cores=threads, memory_mb=int(memory_mb * MEMORY_SHARE))
    return Cluster(manager="local", workers=(here,))
