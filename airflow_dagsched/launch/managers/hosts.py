"""Hosts of blocks by the names that the cluster's workers go by: a store may say ``w2``, Spark ``w2.example.com``.

::

    workers     w1.example.com   w2.example.com   10.0.0.13        a name that is a worker's: as it is
    blocks      w2               W1.EXAMPLE.COM   10.0.0.13        else the only worker whose name is longer or
    called      w2.example.com   w1.example.com   10.0.0.13        shorter by a domain; else as it is
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from ipaddress import ip_address

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow, Partition, Source, Step
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.plan.pruning.conditions.condition import ALWAYS
from airflow_dagsched.plan.pruning.layout import parse_partition_name
from airflow_dagsched.plan.pruning.sources import Selection
from airflow_dagsched.plan.pruning.steps import Selections, name_dataset


def add_stored_sources(dataflow: Dataflow, stored: Mapping[str, Source]) -> tuple[Dataflow, Selections]:
    """The dataflow whose steps read the datasets in ``stored`` as sources, and what they read of them: everything."""
    read: dict[str, set[str]] = {}
    for channel in dataflow.channels:
        name = name_dataset(channel.src, channel.output)
        if name in stored:
            read.setdefault(channel.dst, set()).add(name)
    selections = {
        (step, name): Selection(name, ALWAYS, stored[name].partitions)
        for step in read
        for name in sort_naturally(read[step])
    }

    def reading(step: Step) -> Step:
        more = tuple(Source(path=name) for name in sort_naturally(read.get(step.id, ())))
        return replace(step, sources=(*step.sources, *more))

    return replace(dataflow, steps=tuple(map(reading, dataflow.steps))), selections


def rename_hosts(selections: Selections, cluster: Cluster) -> Selections:
    """What is read of each source, each host of its blocks by the name of the worker there, if one is meant."""
    called = cache(match_hosts(worker.host for worker in cluster.workers))
    return {
        key: replace(found, needed=tuple(_rename_partition(one, called) for one in found.needed))
        for key, found in selections.items()
    }


def locate_sources(dataflow: Dataflow, selections: Selections) -> Dataflow:
    """The dataflow with what there is of its sources, where it is known who holds it: what placement goes by."""
    if not selections:
        return dataflow

    def step(one: Step) -> Step:
        return replace(one, sources=tuple(_locate_source(one, source, selections) for source in one.sources))

    return replace(dataflow, steps=tuple(map(step, dataflow.steps)))


def _locate_source(step: Step, source: Source, selections: Selections) -> Source:
    found = selections.get((step.id, source.path))
    # Placement asks for hosts alone: a source whose copies nobody knows stays as it is declared.
    if found is None or not any(block.hosts for one in found.needed for block in one.blocks):
        return source
    # What is left out stays listed, so that all of the table is accounted for.
    return replace(source, partitions=(*found.needed, *map(parse_partition_name, found.left_out)))


def _rename_partition(partition: Partition, called: Callable[[str], str]) -> Partition:
    blocks = (replace(block, hosts=tuple(map(called, block.hosts))) for block in partition.blocks)
    return replace(partition, blocks=tuple(blocks))


def match_hosts(hosts: Iterable[str]) -> Callable[[str], str]:
    """How a name is said with the names in ``hosts``: the host it means, or itself.

    >>> match_hosts(["w1.a.com", "w2.a.com"])("W2")
    'w2.a.com'
    """
    # Names of hosts are the same in capitals (RFC 4343).
    exact = {host.lower(): host for host in hosts}
    by_short: dict[str, list[str]] = {}
    for name in exact:
        by_short.setdefault(_shorten_host(name), []).append(name)

    def called(name: str) -> str:
        asked = name.lower()
        if asked in exact:
            return exact[asked]
        alike = [other for other in by_short.get(_shorten_host(asked), ()) if _is_longer(asked, other)]
        # Of two that may be meant, neither: a wrong host would keep a step away from its rows.
        return exact[alike[0]] if len(alike) == 1 else name

    return called


def _is_longer(one: str, other: str) -> bool:
    """Whether either name is the other with a domain behind it."""
    return one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _shorten_host(name: str) -> str:
    """An address has no short form."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name.partition(".")[0]
