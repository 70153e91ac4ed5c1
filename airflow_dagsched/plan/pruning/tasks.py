"""How many tasks a scan has: from the data, not from the cluster.

Files are cut at 128 MiB and packed as Spark packs them (``FilePartition.getFilePartitions``): largest first, the next
one that does not fit opens a new task, and each file costs 4 MiB to open. Rule M3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_dagsched.model.dataflow import Partition

SPLIT_BYTES = 128 * 2**20
"""``spark.sql.files.maxPartitionBytes``"""
OPEN_BYTES = 4 * 2**20
"""``spark.sql.files.openCostInBytes``"""


def scan_tasks(partitions: Iterable[Partition]) -> int | None:
    """Tasks of a scan of ``partitions``; None where the size of one is not known."""
    sizes = [_partition_bytes(partition) for partition in partitions]
    # 0 is "not declared": a guess would leave instances out that have work.
    if 0 in sizes:
        return None
    return _count_packed(piece for size in sizes for piece in _cut_pieces(size))


def _partition_bytes(partition: Partition) -> int:
    return partition.bytes or sum(block.bytes for block in partition.blocks)


def _cut_pieces(size: int) -> Iterator[int]:
    whole, rest = divmod(size, SPLIT_BYTES)
    yield from [SPLIT_BYTES] * whole
    if rest:
        yield rest


def _count_packed(pieces: Iterable[int]) -> int:
    tasks, held = 0, SPLIT_BYTES + 1  # more than full: the first piece opens a task
    for piece in sorted(pieces, reverse=True):
        if held + piece > SPLIT_BYTES:
            tasks, held = tasks + 1, 0
        # Next fit, as Spark does it: a task that was left is never looked at again.
        held += piece + OPEN_BYTES
    return tasks
