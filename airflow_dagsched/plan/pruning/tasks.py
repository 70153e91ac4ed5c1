"""How many tasks a scan has: from the data and the instances that are declared, not from the cluster.

A launch tells Spark as many tasks as the step has instances (``spark.sql.files.minPartitionNum``), so files are cut at
an even share of all bytes: at 128 MiB, at most, and at 4 MiB, at least (``FilePartition.maxSplitBytes``). They are
packed as Spark packs them (``FilePartition.getFilePartitions``): largest first, the next one that does not fit opens a
new task, and each file costs 4 MiB to open. Rule M3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_dagsched.model.dataflow import Partition

SPLIT_BYTES = 128 * 2**20
"""``spark.sql.files.maxPartitionBytes``"""
OPEN_BYTES = 4 * 2**20
"""``spark.sql.files.openCostInBytes``"""
SCAN_SETTINGS = "spark.sql.files."
"""How the settings begin by which an author takes the cutting of scans into their own hands."""


def scan_tasks(partitions: Iterable[Partition], asked: int) -> int | None:
    """Tasks of a scan of ``partitions`` of which at least ``asked`` are wanted; None where a size is not known.

    More than so many only where 128 MiB are too little for them; fewer where 4 MiB are too much.
    """
    sizes = [_partition_bytes(partition) for partition in partitions]
    # 0 is "not declared": a guess would leave instances out that have work.
    if 0 in sizes:
        return None
    share = sum(size + OPEN_BYTES for size in sizes) // asked
    split = min(SPLIT_BYTES, max(OPEN_BYTES, share))
    return _count_packed((piece for size in sizes for piece in _cut_pieces(size, split)), split)


def _partition_bytes(partition: Partition) -> int:
    return partition.bytes or sum(block.bytes for block in partition.blocks)


def _cut_pieces(size: int, split: int) -> Iterator[int]:
    whole, rest = divmod(size, split)
    yield from [split] * whole
    if rest:
        yield rest


def _count_packed(pieces: Iterable[int], split: int) -> int:
    tasks, held = 0, split + 1  # more than full: the first piece opens a task
    for piece in sorted(pieces, reverse=True):
        if held + piece > split:
            tasks, held = tasks + 1, 0
        # Next fit, as Spark does it: a task that was left is never looked at again.
        held += piece + OPEN_BYTES
    return tasks
