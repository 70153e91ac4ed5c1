"""Where rows will lie that earlier groups write: on the hosts of the executors that write them.

    sales/clean   0 on w1, 1 on w2       writes 8 GB            a store that keeps its first copy where it is written,
    report/sum    reads them             4 GB on w1, 4 on w2    as HDFS does, has each instance's share on its worker

It is supposed of stores that are on the workers' own hosts alone: where a block of a source is on one of them. After
Twister2, whose receptor's instance runs where the collector's of the same index did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Block, Channel, Dataflow, Partition, Source
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.pruning.steps import name_dataset


def is_stored_on_workers(dataflow: Dataflow, cluster: Cluster) -> bool:
    """Whether a block of a source is on the host of a worker."""
    hosts = {worker.host for worker in cluster.workers}
    blocks = (
        block for step in dataflow.steps for source in step.sources for one in source.partitions for block in one.blocks
    )
    return any(not hosts.isdisjoint(block.hosts) for block in blocks)


def add_written_rows(
    part: Dataflow, channels: Iterable[Channel], earlier: Iterable[Group], cluster: Cluster
) -> Dataflow:
    """The dataflow of a group, each step with what ``earlier`` groups, which are placed, write for it as sources."""
    hosts = {worker.id: worker.host for worker in cluster.workers}
    written = {step: group for group in earlier for step in group.steps}
    inside = {step.id for step in part.steps}
    read: dict[str, dict[str, Source]] = {}
    for channel in channels:
        # What each instance reads as a whole is as near to one worker as to another.
        if channel.dst in inside and channel.src in written and channel.bytes and channel.routing != "broadcast":
            name = name_dataset(channel.src, channel.output)
            found = Source(path=name, partitions=tuple(_list_shares(channel, written[channel.src], hosts)))
            read.setdefault(channel.dst, {})[name] = found
    steps = (replace(step, sources=(*step.sources, *read.get(step.id, {}).values())) for step in part.steps)
    return replace(part, steps=tuple(steps))


def _list_shares(channel: Channel, writer: Group, hosts: Mapping[str, str]) -> Iterator[Partition]:
    """The rows of each instance that writes them, by its index."""
    where = {index: box.worker for box in writer.containers for step, index in box.instances if step == channel.src}
    for index in sorted(where):
        share = channel.bytes // len(where)
        block = Block(bytes=share, hosts=(hosts[where[index]],))
        yield Partition(key={"instance": index}, bytes=share, blocks=(block,))
