"""Containers of one shape, as a policy is offered them: which shapes to try, and how many each worker has room for.

w1  16 cores   [ 6 ][ 6 ]        Levelled: all workers take part in what state is levelled over, so a container is
w2   6 cores   [ 6 ]             as large as the smallest of them allows, where they are alike a whole worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.placement.containers.requirements import add_padding, compute_held_at_once
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.values import Amounts, Offer
from airflow_dagsched.plan.plan_types import Group

SPREADING = "round_robin"
"""The policy that uses all workers: the cores that others put in few containers it has in one on each."""
LEVELLING = "high_availability"
"""The policy that levels state over all workers."""


class Shape(Struct, frozen=True):
    """Cores and memory of each container of a group; MiB of padding included."""

    cores: int
    memory_mb: int
    is_fixed: bool = False
    """Whether it stays, whatever is in it: it is the author's."""


def list_shapes(group: Group, request: Request, policy: str) -> Iterator[Shape]:
    """Sizes of a container to try: the planned cores, in batch fewer where there is no room for that.

    A policy that uses all workers tries first what is left for each if they share the planned cores evenly.
    """
    planned = group.containers[0].cores
    least = math.ceil(max(step.needs.cores for step in request.steps))
    if policy == LEVELLING and group.residency == "all":
        # Large ones first: state is levelled over workers, so a container should be a whole one.
        yield from dict.fromkeys(_list_levelled_shapes(group, request, least))
    if policy == SPREADING:
        even = math.ceil(planned * len(group.containers) / max(1, len(request.offers)))
        # From the even share up: on fewer workers than hoped for, each needs more.
        yield from (make_shape(group, request, cores) for cores in range(max(least, even), planned))
    yield from (make_shape(group, request, cores) for cores in range(planned, least - 1, -1))


def _list_levelled_shapes(group: Group, request: Request, least: int) -> Iterator[Shape]:
    """From all that the smallest worker has down to one instance: memory as the least has by cores, then by need."""
    rooms = [(int(offer.cores or 0), int(offer.memory_mb or 0)) for offer in request.offers if offer.cores]
    roomy = [(cores, memory) for cores, memory in rooms if cores >= least]
    cores = min((cores for cores, _ in roomy), default=0)
    while cores >= least:
        # All that the least of them can give: memory that nobody else has a use for makes room for more copies.
        yield Shape(cores, min(memory // (has // cores) for has, memory in roomy))
        yield Shape(cores, _measure_share(group, request, cores, 1 + request.settings.num_standbys))
        cores //= 2  # not one by one: each shape costs a whole placement


def make_shape(group: Group, request: Request, cores: int) -> Shape:
    """A container of so many cores: of a batch group with memory for whatever could run in it at once.

    Of a streaming one with fewer cores than planned it has its share of the memory, and one instance more.
    """
    planned = group.containers[0]
    if group.residency == "slots":
        counts = [(step, step.parallelism) for step in request.steps]
        return Shape(
            cores, math.ceil(add_padding(compute_held_at_once(request, counts, cores), request.settings).memory_mb)
        )
    wanted = _measure_share(group, request, cores)
    # A smaller container never asks for more than the planned one, which had room on an idle cluster.
    return Shape(cores, planned.memory_mb if cores == planned.cores else min(wanted, planned.memory_mb))


def _measure_share(group: Group, request: Request, cores: int, copies: int = 1) -> int:
    """Memory of a resident container of so many cores: its share of all, and one instance more."""
    counts = [(step, step.parallelism) for step in request.steps]
    most = max(step.needs.memory_mb for step in request.steps)
    share = (
        copies
        * compute_held_at_once(request, counts).memory_mb
        * cores
        / group.containers[0].cores
        / len(group.containers)
    )
    return math.ceil(add_padding(Amounts(share + most), request.settings).memory_mb)


def make_bins(group: Group, request: Request, shape: Shape, policy: str) -> list[Offer]:
    """Containers of the shape, as many as each worker has room for.

    One a worker that gets all that is offered. To use all workers, as many as an even share of the planned cores,
    or of the instances in containers of so many at most, takes, and numbered so that a turn goes round the workers
    before it comes to the second container of one.
    """
    made = []
    one_each = request.settings.container_size == "offered"
    most = 1 if one_each else _count_even_share(group, request, shape) if policy == SPREADING else None
    for offer in request.offers:
        # Disk is not looked at here: what a container needs of it depends on what the policy puts in.
        copies = min(int((offer.cores or 0) // shape.cores), int((offer.memory_mb or 0) // max(1, shape.memory_mb)))
        copies = copies if most is None else min(copies, most)
        one = replace(offer, memory_mb=shape.memory_mb, disk_mb=_share_disk(offer, copies, request), cores=shape.cores)
        made += [replace(one, id=_name_bin(offer, at, policy)) for at in range(copies)]
    return made


def _count_even_share(group: Group, request: Request, shape: Shape) -> int:
    """Containers of each worker, if all have as many."""
    counts = [step.parallelism for step in request.steps]
    # What is resident is in containers together, of batch steps each by itself: as caps count.
    instances = sum(counts) if request.residency == "all" else max(counts)
    capped = instances / (request.settings.instances_per_container or instances)
    wanted = max(len(group.containers) * group.containers[0].cores / shape.cores, capped)
    return math.ceil(wanted / max(1, len(request.offers)))


def _share_disk(offer: Offer, containers: int, request: Request) -> float | None:
    """MiB that each container is offered of a worker's disk, which they share: all but the others' padding."""
    if offer.disk_mb is None:
        return None
    return max(0, offer.disk_mb - (containers - 1) * request.settings.disk_padding_mb)


def _name_bin(offer: Offer, at: int, policy: str) -> str:
    # The policy goes round its workers in natural order of their ids: with the number first, round all workers.
    return f"{at}:{offer.worker}" if policy == SPREADING else f"{offer.worker}:{at}"
