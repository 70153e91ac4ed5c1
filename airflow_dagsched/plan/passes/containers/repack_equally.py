"""Containers of a resident group dealt anew on the workers that a policy chose: equal ones that hold the least.

policy      w1 [aaaaaa]  w2 [bb]  w3 [cc]  w4 [cc]        4 of 6 cores: 24 for 12 instances
repacked    w1 [aa][aa][aa]  w2 [bb]  w3 [cc]  w4 [cc]    6 of 2 cores: 12 for 12

An application has one executor shape, so the fullest container decides for all. What is held is counted in cores, with
memory at the cluster's own rate of MiB a core: each container more costs its padding. Of equals those with the fewest
containers. No instance changes its worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.containers.requirements import add_padding
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.values import Amounts, ContainerPlan, InstancePlan, sum_amounts


class _Tenants(Struct, frozen=True):
    """What a policy put on one worker."""

    first: ContainerPlan
    """Names the worker."""
    instances: tuple[InstancePlan, ...]
    """The largest first."""
    standbys: tuple[InstancePlan, ...]
    warmups: tuple[InstancePlan, ...]

    @property
    def cores(self) -> float:
        """Of all instances together."""
        return sum(one.needs.cores for one in self.instances)


def repack_equally(request: Request, boxes: Sequence[ContainerPlan], mb_per_core: float) -> Sequence[ContainerPlan]:
    """The boxes of a resident request, or others that hold less; ``mb_per_core``: of the cluster's workers."""
    tenants = _group_by_worker(boxes)
    widest, fullest = _find_widest(boxes), _measure_fullest(boxes)
    most = request.settings.instances_per_container or request.instance_count
    best, least = boxes, _measure_held(request, boxes, mb_per_core)
    bounds = ((_bound_held(request, tenants, cores, mb_per_core), cores) for cores in range(widest, fullest + 1))
    for bound, cores in sorted(bounds):
        # In the order of what they hold at least: the rest cannot hold less.
        if bound > least[0] + TOLERANCE:
            break
        dealt = [box for there in tenants for box in _deal_tenants(there, cores, most)]
        held = _measure_held(request, dealt, mb_per_core)
        if held < least and _has_room(request, dealt):
            best, least = dealt, held
    return best


def _group_by_worker(boxes: Sequence[ContainerPlan]) -> list[_Tenants]:
    found: dict[str, list[ContainerPlan]] = {}
    for box in boxes:
        found.setdefault(box.worker, []).append(box)
    return [
        _Tenants(
            there[0],
            tuple(sorted((one for box in there for one in box.instances), key=_rank_instance)),
            tuple(one for box in there for one in box.standbys),
            tuple(one for box in there for one in box.warmups),
        )
        for there in found.values()
    ]


def _rank_instance(one: InstancePlan) -> tuple[float, float, int, int]:
    """By cores, then memory, the largest first."""
    return -one.needs.cores, -one.needs.memory_mb, one.number, one.index


def _find_widest(boxes: Iterable[ContainerPlan]) -> int:
    return math.ceil(max((one.needs.cores for box in boxes for one in box.instances), default=1))


def _measure_fullest(boxes: Iterable[ContainerPlan]) -> int:
    return math.ceil(max(sum(one.needs.cores for one in box.instances) for box in boxes))


def _measure_held(request: Request, boxes: Sequence[ContainerPlan], mb_per_core: float) -> tuple[float, int]:
    """Cores held, memory counted in with them, and how many containers."""
    running = [box for box in boxes if box.instances]
    copies = sum(_measure_memory(request, box) for box in boxes if not box.instances)
    memory = len(running) * max((_measure_memory(request, box) for box in running), default=0) + copies
    # To the billionth of a core: sums of the same parts tie.
    return round(len(running) * _measure_fullest(boxes) + memory / mb_per_core, 9), len(boxes)


def _measure_memory(request: Request, box: ContainerPlan) -> int:
    """MiB of the container with its padding."""
    held = sum(one.needs.memory_mb for one in (*box.instances, *box.copies))
    return math.ceil(add_padding(Amounts(held), request.settings).memory_mb)


def _bound_held(request: Request, tenants: Sequence[_Tenants], cores: int, mb_per_core: float) -> float:
    """No deal into containers of so many cores holds less: each core counted once, and the least padding of each."""
    containers = sum(math.ceil(there.cores / cores) for there in tenants)
    memory = sum(one.needs.memory_mb for there in tenants for one in (*there.instances, *there.standbys))
    return containers * cores + (memory + containers * request.settings.ram_padding_mb) / mb_per_core


def _deal_tenants(there: _Tenants, cores: int, most: int) -> Iterator[ContainerPlan]:
    """Containers of so many cores, and instances at most, with all that is on a worker; copies alone are one."""
    bins = _pack_evenly(there.instances, cores, most) or [[]]
    kept: list[list[list[InstancePlan]]] = [[[], []] for _ in bins]
    memory = [sum(one.needs.memory_mb for one in held) for held in bins]
    for role, copies in enumerate((there.standbys, there.warmups)):
        for copy in copies:
            at = min(range(len(bins)), key=memory.__getitem__)
            kept[at][role].append(copy)
            memory[at] += copy.needs.memory_mb
    for held, (standbys, warmups) in zip(bins, kept, strict=True):
        yield replace(there.first, instances=tuple(held), standbys=tuple(standbys), warmups=tuple(warmups))


def _pack_evenly(instances: Sequence[InstancePlan], cores: int, most: int) -> list[list[InstancePlan]]:
    """In the fewest containers that an even deal, or else first fit, finds; ``instances``: the largest first."""
    first_fit = _pack_first_fit(instances, cores, most)
    fewest = math.ceil(sum(one.needs.cores for one in instances) / cores)
    tried = (_deal_evenly(instances, cores, most, count) for count in range(fewest, len(first_fit) + 1))
    return next((bins for bins in tried if bins is not None), first_fit)


def _deal_evenly(
    instances: Sequence[InstancePlan], cores: int, most: int, count: int
) -> list[list[InstancePlan]] | None:
    """Each to the container with the least memory among those with room; None: one had none."""
    bins: list[list[InstancePlan]] = [[] for _ in range(count)]
    memory, free = [0.0] * count, [float(cores)] * count
    for one in instances:
        open_ = [at for at in range(count) if one.needs.cores <= free[at] + TOLERANCE and len(bins[at]) < most]
        if not open_:
            return None
        at = min(open_, key=lambda at: (memory[at], -free[at], at))
        bins[at].append(one)
        memory[at] += one.needs.memory_mb
        free[at] -= one.needs.cores
    return bins


def _pack_first_fit(instances: Sequence[InstancePlan], cores: int, most: int) -> list[list[InstancePlan]]:
    bins: list[list[InstancePlan]] = []
    free: list[float] = []
    for one in instances:
        roomy = (at for at, held in enumerate(bins) if one.needs.cores <= free[at] + TOLERANCE and len(held) < most)
        at = next(roomy, len(bins))
        if at == len(bins):
            bins.append([])
            free.append(cores)
        bins[at].append(one)
        free[at] -= one.needs.cores
    return bins


def _has_room(request: Request, boxes: Sequence[ContainerPlan]) -> bool:
    """Whether each worker has what the containers on it ask for, if all are as large as the largest."""
    running = [box for box in boxes if box.instances]
    cores, memory = _measure_fullest(boxes), max((_measure_memory(request, box) for box in running), default=0)
    asked: dict[str, Amounts] = {}
    for box in boxes:
        kept = Amounts(memory, 0, cores) if box.instances else Amounts(_measure_memory(request, box))
        held = sum_amounts(one.needs for one in (*box.instances, *box.copies))
        disk = Amounts(0, math.ceil(held.disk_mb + request.settings.disk_padding_mb))
        asked[box.worker] = asked.get(box.worker, Amounts()) + kept + disk
    room = {
        offer.worker: tuple(math.inf if has is None else has for has in offer.list_values()) for offer in request.offers
    }
    return all(amounts.fits_within(room[worker]) for worker, amounts in asked.items())  # type: ignore[arg-type]
