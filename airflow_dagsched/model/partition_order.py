"""One order of a source's partitions, and of their blocks: how a listing happens to be ordered means nothing.

listed     day=10 [h2] [h1]   day=2 [h1]          Neighbours by key stay neighbours; days count as numbers do.
in order   day=2 [h1]   day=10 [h1] [h2]          Spark sorts what it reads by length: no order of files reaches it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from airflow_dagsched.model.dataflow import Block, Partition
from airflow_dagsched.model.order import NaturalKey, natural_key

PartitionKey = tuple[NaturalKey, int, int, list[tuple[int, list[str]]]]

_ENCODER = msgspec.json.Encoder(order="deterministic")


def sort_partitions(partitions: Iterable[Partition]) -> list[Partition]:
    """The partitions by key, bucket, bytes and blocks; equal ones are alike, so their order does not show."""
    return sorted(partitions, key=rank_partition)


def rank_partition(partition: Partition) -> PartitionKey:
    """Where the partition belongs among others of its source, whatever the order in which its blocks are listed."""
    key = natural_key(_ENCODER.encode(partition.key).decode())
    bucket = -1 if partition.bucket is None else partition.bucket
    return key, bucket, partition.bytes, sorted(map(_rank_block, partition.blocks))


def sort_blocks(partition: Partition) -> tuple[Block, ...]:
    """The blocks of a partition by bytes and hosts; one of unknown hosts where it lists none."""
    if len(partition.blocks) < 2:
        return partition.blocks or (Block(bytes=partition.bytes),)
    return tuple(sorted(partition.blocks, key=_rank_block))


def _rank_block(block: Block) -> tuple[int, list[str]]:
    return block.bytes, sorted(block.hosts)
