"""What to say where a group has no room: needed and available of what lacks, on the worker that comes nearest.

w1  2048 MiB     two resident instances of 2000 MiB, and a padding of 384: 4384 MiB in one container.
w2  2048 MiB     All workers have 6144, which is no answer: one instance needs a container of 2384 MiB,
w3  2048 MiB     and any of them has 2048.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.placement.containers.evidence import Room, explain_shortage
from airflow_dagsched.plan.costing.demand import Demand, deal_instances
from airflow_dagsched.plan.costing.first_fit import sum_resident_memory
from airflow_dagsched.plan.needs import measure_padding

TRIED = 16
"""Numbers of equal containers, at most, that are looked at for the one that comes nearest."""


def explain_refusal(demand: Demand, workers: Sequence[Worker]) -> DoesNotFit:
    """The least of what is needed, against the most there is."""
    return (_refuse_resident if demand.residency == "all" else _refuse_in_slots)(demand, workers)


def _refuse_in_slots(demand: Demand, workers: Sequence[Worker]) -> DoesNotFit:
    """The smallest container that could hold an instance of each step, where it may be."""
    cores = demand.find_least_cores()
    widest = max(workers, key=lambda worker: worker.free_cores, default=None)
    if widest is None or cores > widest.free_cores:
        has, name = (widest.free_cores, widest.id) if widest else (0, "")
        return DoesNotFit(*_name_cores(demand, cores), cores, has, "cores", name)
    needs = demand.measure_container(cores), 0, cores
    thing = f"a container with {cores} cores"
    shortage = explain_shortage(f"group {demand.group!r}", thing, needs, _list_rooms(workers, ()))
    return shortage or _refuse_pins(demand, workers, thing, needs)


def _name_cores(demand: Demand, cores: int) -> tuple[str, str]:
    """Who needs so many, and what for."""
    wide = (step for step, need in zip(demand.steps, demand.needs, strict=True) if need.cores == cores)
    step = None if demand.size.cores else next(wide)
    if step is None:
        return f"group {demand.group!r}", "cores of an executor, as its author sizes it,"
    return f"step {step.id!r}", "cores of an instance"


def _refuse_pins(demand: Demand, workers: Sequence[Worker], thing: str, needs: Sequence[float]) -> DoesNotFit:
    """Some worker has room, but none of those that a step is pinned to."""
    shortages = (
        explain_shortage(f"step {step.id!r}", f"{thing} where it is pinned", needs, _list_rooms(workers, step.pinned))
        for step in demand.steps
    )
    found = next(filter(None, shortages), None)
    return found or DoesNotFit(f"group {demand.group!r}", "containers on the workers its steps are pinned to", 1, 0)


def _list_rooms(workers: Sequence[Worker], allowed: Sequence[str]) -> Iterator[Room]:
    """What is free on the workers ``allowed``; empty: on all. Disk is looked at where a container is dealt its own."""
    for worker in workers:
        if not allowed or worker.id in allowed:
            yield worker.id, (worker.free_memory_mb, math.inf, worker.free_cores)


def _refuse_resident(demand: Demand, workers: Sequence[Worker]) -> DoesNotFit:
    cores = demand.count_wanted_cores()
    free = sum(worker.free_cores for worker in workers)
    if cores > free:
        return DoesNotFit(f"group {demand.group!r}", "cores of all its resident instances", cores, free, "cores")
    # At least so much in any number of containers: a refusal must not ask for more than could be enough.
    memory = sum_resident_memory(demand) + measure_padding(0, demand.settings)
    offered = sum(worker.free_memory_mb for worker in workers)
    if memory > offered:
        return DoesNotFit(f"group {demand.group!r}", "memory of all its resident instances", memory, offered, "MiB")
    shortages = [*_list_equal_shortages(demand, workers), *_list_dealt_shortages(demand, workers)]
    nearest = min(shortages, key=lambda short: short.needed / max(1, short.available), default=None)
    # Room for each container there is, and none for all that is pinned: whose that is no amount says.
    return nearest or _refuse_pins(demand, workers, "a container", (0, 0, 0))


def _list_equal_shortages(demand: Demand, workers: Sequence[Worker]) -> Iterator[DoesNotFit]:
    """Of ever more equal containers wherever they like: the worker that comes nearest to holding one more of them."""
    loose, instances = demand.drop_pins(), sum(step.parallelism for step in demand.steps)
    for count in range(1, min(TRIED, len(workers), instances) + 1):
        required = [share.sum_required(loose, 0) for share in deal_instances(loose, [""] * count)]
        needs = max(one.memory_mb for one in required), 0, max(one.cores for one in required)
        yield from _explain_lacking(demand, needs, count, workers)


def _list_dealt_shortages(demand: Demand, workers: Sequence[Worker]) -> Iterator[DoesNotFit]:
    """Of a container on each worker, with what is pinned where it has to be."""
    shares = deal_instances(demand, [worker.id for worker in workers])
    required = [share.sum_required(demand, 0) for share in shares if share.instances]
    needs = max(one.memory_mb for one in required), 0, max(one.cores for one in required)
    used = [worker for worker, share in zip(workers, shares, strict=True) if share.instances]
    yield from _explain_lacking(demand, needs, len(used), used)


def _explain_lacking(
    demand: Demand, needs: tuple[int, int, int], count: int, workers: Sequence[Worker]
) -> Iterator[DoesNotFit]:
    """If fewer than ``count`` workers hold a container of these ``needs``: which of the others comes nearest."""
    rooms = list(_list_rooms(workers, ()))
    lacking = [room for room in rooms if needs[0] > room[1][0] or needs[2] > room[1][2]]
    if len(rooms) - len(lacking) < count:
        thing = f"one of {count} equal containers, {needs[2]} cores and {needs[0]} MiB," if count > 1 else "a container"
        shortage = explain_shortage(f"group {demand.group!r}", thing, needs, lacking)
        if shortage:
            yield shortage
