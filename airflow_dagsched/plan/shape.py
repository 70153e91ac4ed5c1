"""The shape of a group: its residency, how many containers of which size it asks for, and how long it computes.

    slots residency (batch)                     all residency (streaming)
    w1 [c c c c][c c c c]  w2 [c c c c]         w1 [c c c c c c]  w2 [c c c c c c]
    instances run in waves: a container has     instances stay: a container has the sum of what it
    the memory of its largest so many           holds; the fewest workers that have room

All containers of a group are equal in cores and memory, since a Spark application has one executor shape.
A batch group asks for the cores that its list schedule uses at its widest moment, no more. Where memory is
short its containers shrink to fewer cores: fewer instances at once are slower, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.placement.equal import equal_containers
from airflow_dagsched.placement.request import request_of
from airflow_dagsched.placement.values import offer_of
from airflow_dagsched.plan.demand import Demand, Residency, Share, deal, demand_of
from airflow_dagsched.plan.fit import places, refusal, resident_memory, some_fit
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.inside import Inside, Pool, in_slots, resident
from airflow_dagsched.plan.needs import padding
from airflow_dagsched.plan.settings_file import placement_settings

DIGITS = 6
"""Seconds are compared to the microsecond."""
UNLIKE_BUDGET = 30_000
"""Places looked at, at most, for several equal containers a worker: some hundredths of a second."""


class Shape(NamedTuple):
    """What a group asks of the cluster."""

    residency: Residency
    slots: int
    cores: int
    """Of each container."""
    memory_mb: int
    """Of each container, padding included."""
    disk_mb: tuple[int, ...]
    """Of each container; empty where no worker's disk has a limit."""
    places: tuple[str, ...]
    """A worker for each container: where it has to be if a step is pinned, else where it fits on an idle cluster."""
    inside: Inside
    short_of: str
    """``"cores"`` or ``"memory"`` where the cluster has less than the steps could use; else empty."""
    pinned: bool
    dealt: tuple[Share, ...] = ()
    """What each container holds, if that is not as ``deal`` has it."""

    @property
    def held_cores(self) -> int:
        return self.cores * len(self.places)


def shape_of(name: str, members: Sequence[int], given: Given) -> Shape:
    """The shape of the group ``name`` of these steps, in the order in which they start; raises ``DoesNotFit``."""
    if len(members) == 1:
        node, lone = members[0], given.work.lone
        if node not in lone:
            lone[node] = _alone(name, node, given)
        return lone[node]
    key = tuple(members)
    known = given.work.shapes.get(key)
    if known is None:
        known = given.work.shapes[key] = _shape_of(name, members, given)
    return known


def _alone(name: str, node: int, given: Given) -> Shape:
    """Of one step: most steps are like others but for what a wave of them takes."""
    work = given.work
    kind, seconds = work.kind[node], work.runtime[node]
    if kind in work.alone and seconds:
        shape, waves = work.alone[kind]
        return _as_long(shape, waves * seconds)
    shape = _shape_of(name, (node,), given)
    if seconds and not shape.dealt:
        work.alone[kind] = shape, round(shape.inside.compute_s / seconds)
    return shape


def _as_long(shape: Shape, seconds: float) -> Shape:
    """The shape for a step that takes so many seconds: the same one, where it does."""
    residency, slots, cores, memory_mb, disk_mb, places, inside, short_of, pinned, dealt = shape
    if seconds == inside.compute_s:
        return shape
    other = Inside(seconds, inside.spread_s, inside.steps, inside.cores)
    return Shape(residency, slots, cores, memory_mb, disk_mb, places, other, short_of, pinned, dealt)


def _shape_of(name: str, members: Sequence[int], given: Given) -> Shape:
    demand = demand_of(name, members, given)
    _refuse_pins(demand, given.work.workers)
    shape = _resident(demand, members, given) if demand.residency == "all" else _slotted(demand, members, given)
    if _limits_disk(given.work.workers):
        return _with_disk(shape, demand, given.work.workers)
    return shape


def _slotted(demand: Demand, members: Sequence[int], given: Given) -> Shape:
    """First as if cores were a pool with room for all; then what that used, in containers."""
    workers = given.work.workers
    free = sum(worker.free_cores for worker in workers)
    least = demand.most_cores()
    widest = max(least, min(free, demand.wanted_cores()))
    inside = in_slots(members, given, demand.slots, Pool(widest, [step.parallelism for step in demand.steps]))
    peak = inside.cores
    cores, chosen = _containers(demand, members, peak, given)
    if not _holds(demand, cores, len(chosen), inside):
        inside = in_slots(members, given, demand.slots, pool_of(demand, cores, chosen))
    memory = demand.memory_at_once(cores)
    short = "memory" if cores * len(chosen) < peak else "cores" if peak == widest < demand.wanted_cores() else ""
    return Shape(
        demand.residency,
        max(1, inside.steps),
        cores,
        memory + padding(memory, demand.settings),
        (),
        tuple(worker.id for worker in chosen),
        inside,
        short,
        _is_pinned(demand),
    )


Sized = tuple[int, tuple[Worker, ...]]
"""Cores of each container, and a worker for each."""


def _containers(demand: Demand, members: Sequence[int], wanted: int, given: Given) -> Sized:
    """Those in which the group computes soonest, in few containers: each is a JVM to start.

    7 cores are free on one worker: 12 instances take 3 waves on 1 x 4 cores, 2 on 2 x 3, and 2 on 7 x 1.
    """
    found = list(_larger_and_larger(demand, wanted, given))
    if not found:
        raise refusal(demand, given.work.workers)
    if len(found) == 1:
        return found[0]

    def cost(sized: Sized) -> tuple[float, int]:
        inside = in_slots(members, given, demand.slots, pool_of(demand, *sized))
        return round(inside.compute_s, DIGITS), len(sized[1])

    return min(found, key=cost)


def _larger_and_larger(demand: Demand, wanted: int, given: Given) -> Iterator[Sized]:
    """Each with more cores in all than the one before, up to the ``wanted``; in ever smaller containers."""
    most, without_disk = 0, None
    for cores in _cores(demand, wanted, given):
        chosen = _places(demand, cores, wanted, given)
        if _short_of_disk(chosen, deal(demand, _ids(chosen)) if _limits_disk(chosen) else ()):
            without_disk = cores, chosen
        elif cores * len(chosen) > most:
            most = cores * len(chosen)
            yield cores, chosen
        if most >= wanted:
            return
    if not most and without_disk:
        yield without_disk


def _places(demand: Demand, cores: int, wanted: int, given: Given) -> tuple[Worker, ...]:
    """A worker for each container with so many cores, together the ``wanted`` ones; for more, if disk is short."""
    memory = demand.memory_at_once(cores)
    shape = cores, memory + padding(memory, demand.settings), 0
    if given.cluster.manager == "local":
        return places(demand, given.work.workers, shape, 1)
    count, most = -(-wanted // cores), sum(step.parallelism for step in demand.steps)
    chosen = places(demand, given.work.workers, shape, count)
    while count < most and _limits_disk(chosen) and _short_of_disk(chosen, deal(demand, _ids(chosen))):
        count = min(most, 2 * count)
        largest = max(share.disk_mb for share in deal(demand.unpinned(), [""] * count))
        chosen = places(demand, given.work.workers, (*shape[:2], largest), count) or chosen
    return _used(demand, chosen)


def _used(demand: Demand, chosen: tuple[Worker, ...]) -> tuple[Worker, ...]:
    """Those that are dealt an instance: some are not where the steps are pinned elsewhere. The others' shares stay."""
    if not chosen or not _is_pinned(demand):
        return chosen
    shares = deal(demand, _ids(chosen))
    return tuple(worker for worker, share in zip(chosen, shares, strict=True) if share.instances)


def _cores(demand: Demand, wanted: int, given: Given) -> Iterator[int]:
    """Cores of a container, most first. A local application has all the cores there are."""
    least = demand.most_cores()
    most = max((worker.free_cores for worker in given.work.workers), default=0)
    if given.cluster.manager != "local":
        most = min(most, max(least, min(demand.settings.container_cores, wanted)))
    return iter(range(most, least - 1, -1))


def _holds(demand: Demand, cores: int, count: int, inside: Inside) -> bool:
    """Whether the schedule in a pool is that in the containers, too: nothing is split over two of them."""
    simple = all(need.cores == 1 for need in demand.needs) and not _is_pinned(demand)
    return simple and cores * count >= inside.cores


def pool_of(demand: Demand, cores: int, chosen: Sequence[Worker]) -> Pool:
    """Containers of so many cores on these workers, one entry each."""
    lanes = []
    for step, need in zip(demand.steps, demand.needs, strict=True):
        allowed = sum(1 for worker in chosen if not step.pinned or worker.id in step.pinned)
        lanes.append(allowed * (cores // need.cores))
    return Pool(cores * len(chosen), lanes)


def _resident(demand: Demand, members: Sequence[int], given: Given) -> Shape:
    """One container on each of the fewest workers, in order, that hold everything at once; else several on some."""
    workers = given.work.workers
    inside = resident(members, given)
    if not _enough(demand, inside.cores, workers):
        raise refusal(demand, workers)
    short = None
    for count in range(_fewest(inside.cores, workers), len(workers) + 1):
        shape = _one_each(demand, inside, workers, count)
        if shape is not None and not (_limits_disk(workers) and _short(shape, demand, workers)):
            return shape
        short = short or shape
    unlike = _several_a_worker(demand, inside, workers)
    if unlike is not None:
        return unlike
    if short is None:
        raise refusal(demand, workers)
    return short


def _one_each(demand: Demand, inside: Inside, workers: Sequence[Worker], count: int) -> Shape | None:
    """Equal containers on so many workers, cores dealt evenly; None where they do not fit. Disk is not looked at."""
    roomy = some_fit(demand, workers, count)
    chosen = places(demand, roomy, None, count) if len(roomy) >= count else ()
    if not chosen:
        return None
    shares = deal(demand, _ids(chosen))
    required = [share.required(demand, 0) for share in shares]
    cores, memory = max(one.cores for one in required), max(one.memory_mb for one in required)
    if not all(cores <= worker.free_cores and memory <= worker.free_memory_mb for worker in chosen):
        return None
    used = tuple(worker.id for worker, share in zip(chosen, shares, strict=True) if share.instances)
    return Shape(demand.residency, demand.slots, cores, memory, (), used, inside, "", _is_pinned(demand))


def _enough(demand: Demand, cores: int, workers: Sequence[Worker]) -> bool:
    """Whether all workers together have what all instances together need, padding left aside."""
    offered = sum([worker.free_cores for worker in workers]), sum([worker.free_memory_mb for worker in workers])
    return cores <= offered[0] and resident_memory(demand) <= offered[1]


def _is_pinned(demand: Demand) -> bool:
    return any(step.pinned for step in demand.steps)


def _shares(shape: Shape, demand: Demand) -> Sequence[Share]:
    """What each container holds."""
    return shape.dealt or deal(demand, shape.places)


def _short(shape: Shape, demand: Demand, workers: Sequence[Worker]) -> tuple[Worker, int] | None:
    """See ``_short_of_disk``."""
    known = {worker.id: worker for worker in workers}
    return _short_of_disk([known[place] for place in shape.places], _shares(shape, demand))


def _several_a_worker(demand: Demand, inside: Inside, workers: Sequence[Worker]) -> Shape | None:
    """Equal containers, several on the larger of unlike workers; None where that does not fit, either.

    Where some step is pinned, or disk is scarce, what is in a container decides where it may be: then it stays there.
    """
    steps = (
        msgspec.structs.replace(step, cores=need.cores, memory_mb=need.memory_mb, disk_mb=need.disk_mb, order=at)
        for at, (step, need) in enumerate(zip(demand.steps, demand.needs, strict=True))
    )
    part = Dataflow(name=demand.group, steps=tuple(steps))
    request = request_of(part, [offer_of(worker) for worker in workers], placement_settings(demand.settings))
    found = equal_containers(request, UNLIKE_BUDGET)
    if found is None:
        return None
    shares = [Share([], []) for _ in found.offers]
    for at, (step, need) in enumerate(zip(demand.steps, demand.needs, strict=True)):
        for index, box in enumerate(found.places[at]):
            shares[box].instances.append((step.id, index))
            shares[box].needs.append(need)
    used = [(offer.worker, share) for offer, share in zip(found.offers, shares, strict=True) if share.instances]
    required = [share.required(demand, 0) for _, share in used]
    return Shape(
        demand.residency,
        demand.slots,
        max(one.cores for one in required),
        max(one.memory_mb for one in required),
        (),
        tuple(worker for worker, _ in used),
        inside,
        "",
        pinned=_is_pinned(demand) or _scarce_disk(shares, workers),
        dealt=tuple(share for _, share in used),
    )


def _fewest(cores: int, workers: Sequence[Worker]) -> int:
    """No fewer workers have so many cores."""
    most = max((worker.free_cores for worker in workers), default=0)
    return max(1, -(-cores // most)) if most else len(workers) + 1


def _with_disk(shape: Shape, demand: Demand, workers: Sequence[Worker]) -> Shape:
    """What each container is dealt decides its disk; raises ``DoesNotFit``."""
    short = _short(shape, demand, workers)
    if short:
        worker, needed = short
        what = f"group {demand.group!r}"
        raise DoesNotFit(what, f"disk of worker {worker.id!r}", needed, worker.free_disk_mb or 0, "MiB")
    return shape._replace(disk_mb=tuple(share.disk_mb for share in _shares(shape, demand)))


def _limits_disk(workers: Sequence[Worker]) -> bool:
    return any(worker.free_disk_mb is not None for worker in workers)


def _scarce_disk(shares: Sequence[Share], workers: Sequence[Worker]) -> bool:
    """Whether some worker has less than all containers together need."""
    needed = sum(share.disk_mb for share in shares)
    return any(worker.free_disk_mb is not None and worker.free_disk_mb < needed for worker in workers)


def _ids(workers: Sequence[Worker]) -> list[str]:
    return [worker.id for worker in workers]


def _short_of_disk(places: Sequence[Worker], shares: Sequence[Share]) -> tuple[Worker, int] | None:
    """The first worker with less disk than its containers hold, and the MiB they need."""
    needed: dict[str, int] = {}
    for worker, share in zip(places, shares, strict=False):
        needed[worker.id] = needed.get(worker.id, 0) + share.disk_mb
        if worker.free_disk_mb is not None and needed[worker.id] > worker.free_disk_mb:
            return worker, sum(one.disk_mb for at, one in zip(places, shares, strict=True) if at is worker)
    return None


def _refuse_pins(demand: Demand, workers: Sequence[Worker]) -> None:
    known = {worker.id for worker in workers}
    for step in demand.steps:
        if step.pinned and known.isdisjoint(step.pinned):
            raise DoesNotFit(f"step {step.id!r}", "workers it is pinned to", 1, 0)
