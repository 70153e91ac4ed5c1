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
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.placement.containers.equal_containers import find_equal_containers
from airflow_dagsched.placement.request import make_request
from airflow_dagsched.placement.values import make_offer
from airflow_dagsched.plan.costing.demand import Demand, Residency, Share, deal_instances, make_demand
from airflow_dagsched.plan.costing.first_fit import (
    choose_with_disk,
    choose_workers,
    find_first_short,
    is_disk_short,
    select_roomy,
    sum_resident_memory,
)
from airflow_dagsched.plan.costing.list_schedule import CorePool, GroupSchedule, schedule_in_slots, schedule_residents
from airflow_dagsched.plan.costing.refusals import explain_refusal
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings_file import parse_placement_settings

UNLIKE_BUDGET = 30_000
"""Places looked at, at most, for several equal containers a worker: some hundredths of a second."""


class ExecutorShape(NamedTuple):
    """What a group asks of the cluster."""

    residency: Residency
    slots: int
    cores: int
    """Of each container."""
    memory_mb: int
    """Of each container, padding included."""
    disk_mb: tuple[int, ...]
    """Of each container; empty where no worker's disk has a limit."""
    workers: tuple[str, ...]
    """A worker for each container: where it has to be if a step is pinned, else where it fits on an idle cluster."""
    schedule: GroupSchedule
    short_of: str
    """``"cores"`` or ``"memory"`` where the cluster has less than the steps could use; else empty."""
    pinned: bool
    dealt: tuple[Share, ...] = ()
    """What each container holds, if that is not as ``deal_instances`` has it."""

    @property
    def held_cores(self) -> int:
        """Cores of all containers together."""
        return self.cores * len(self.workers)


def size_group(name: str, members: Sequence[int], problem: Problem, most_cores: int | None = None) -> ExecutorShape:
    """The shape of the group ``name`` of these steps, in the order in which they start; raises ``DoesNotFit``.

    ``most_cores``: of all containers of a batch group; None: all there are. One instance has its cores in any case.
    """
    demand = make_demand(name, members, problem)
    # First, and by name: further on all that would be seen is that no workers were chosen.
    _refuse_pins(demand, problem.arrays.workers)
    shape = (
        _size_resident(demand, members, problem)
        if demand.residency == "all"
        else _size_in_slots(demand, members, problem, problem.arrays.room.cores if most_cores is None else most_cores)
    )
    if problem.arrays.room.has_disk_limits:
        return _deal_disk(shape, demand, problem.arrays.workers)
    return shape


def _size_in_slots(demand: Demand, members: Sequence[int], problem: Problem, most_cores: int) -> ExecutorShape:
    """First as if cores were a pool with room for all; then what that used, in containers."""
    # A pool with room for all shows how many cores the steps can use at once: more would be asked for in vain.
    least = demand.find_widest_cores()
    widest = max(least, min(most_cores, demand.count_wanted_cores()))
    schedule = schedule_in_slots(
        members, problem, demand.slots, CorePool(widest, [step.parallelism for step in demand.steps])
    )
    peak = schedule.cores
    cores, chosen = _choose_containers(demand, members, peak, problem)
    # An instance of 2 cores does not run on one core here and one there: in containers the group may take longer.
    if not _holds_unsplit(demand, cores, len(chosen), schedule):
        schedule = schedule_in_slots(members, problem, demand.slots, pool_containers(demand, cores, chosen))
    # Not what is dealt: Spark may hand any task to any executor, so each must hold the largest of them together.
    short = "memory" if cores * len(chosen) < peak else "cores" if peak == widest < demand.count_wanted_cores() else ""
    return ExecutorShape(
        demand.residency,
        max(1, schedule.steps),
        cores,
        demand.measure_container(cores),
        (),
        tuple(worker.id for worker in chosen),
        schedule,
        short,
        _is_pinned(demand),
    )


ContainerSet = tuple[int, tuple[Worker, ...]]
"""Cores of each container, and a worker for each."""


def _choose_containers(demand: Demand, members: Sequence[int], wanted: int, problem: Problem) -> ContainerSet:
    """Those in which the group computes soonest, in few containers: each is a JVM to start.

    7 cores are free on one worker: 12 instances take 3 waves on 1 x 4 cores, 2 on 2 x 3, and 2 on 7 x 1.
    """
    found = list(_grow_containers(demand, wanted, problem))
    if not found:
        raise explain_refusal(demand, problem.arrays.workers)
    if len(found) == 1:
        return found[0]

    def cost(sized: ContainerSet) -> tuple[float, int]:
        schedule = schedule_in_slots(members, problem, demand.slots, pool_containers(demand, *sized))
        # Fewer containers where the time is the same: each is a JVM, with padding of its own.
        return round(schedule.compute_s, DIGITS), len(sized[1])

    return min(found, key=cost)


def _grow_containers(demand: Demand, wanted: int, problem: Problem) -> Iterator[ContainerSet]:
    """Each with more cores in use than the one before, up to the ``wanted``; in ever smaller containers."""
    most, without_disk = 0, None
    needs = {need.cores for need in demand.needs}
    for cores in _list_core_counts(demand, wanted, problem):
        chosen = _place_containers(demand, cores, wanted, problem)
        if is_disk_short(demand, chosen):
            without_disk = cores, chosen
        # Smaller containers with no more cores in use would compute no sooner: nothing to choose. Instances of 3
        # cores leave one of 4 idle.
        elif (used := (cores - max(cores % need for need in needs)) * len(chosen)) > most:
            most = used
            yield cores, chosen
        # Larger containers come first, so the first that has all the wanted cores has them in the fewest.
        if most >= wanted:
            return
    # Told with what is missing by ``_deal_disk``; dropped here, the refusal would speak of memory.
    if not most and without_disk:
        yield without_disk


def _place_containers(demand: Demand, cores: int, wanted: int, problem: Problem) -> tuple[Worker, ...]:
    """A worker for each container with so many cores, together the ``wanted`` ones; for more, if disk is short."""
    shape = cores, demand.measure_container(cores)
    count, most = -(-wanted // cores), sum(step.parallelism for step in demand.steps)
    # ``local[n]`` is one process: one container, whatever is asked for.
    if problem.cluster.manager == "local":
        count = most = 1
    chosen = choose_with_disk(demand, problem.arrays.workers, shape, count, most)
    return _drop_empty(demand, chosen)


def _drop_empty(demand: Demand, chosen: tuple[Worker, ...]) -> tuple[Worker, ...]:
    """Those that are dealt an instance: some are not where the steps are pinned elsewhere. The others' shares stay."""
    if not chosen or not _is_pinned(demand):
        return chosen
    shares = deal_instances(demand, _list_ids(chosen))
    return tuple(worker for worker, share in zip(chosen, shares, strict=True) if share.instances)


def _list_core_counts(demand: Demand, wanted: int, problem: Problem) -> Iterator[int]:
    """Cores of a container, most first. A local application has all the cores there are."""
    if demand.size.cores:
        return iter((demand.size.cores,))
    least = demand.find_widest_cores()
    most = problem.arrays.room.most_cores
    if problem.cluster.manager != "local":
        # Large executors of Spark collect garbage for long: the setting caps them, but never below one instance.
        most = min(most, max(least, min(demand.settings.container_cores, wanted)))
    return iter(range(most, least - 1, -1))


def _holds_unsplit(demand: Demand, cores: int, count: int, schedule: GroupSchedule) -> bool:
    """Whether the schedule in a pool is that in the containers, too: nothing is split over two of them."""
    simple = all(need.cores == 1 for need in demand.needs) and not _is_pinned(demand)
    return simple and cores * count >= schedule.cores


def pool_containers(demand: Demand, cores: int, chosen: Sequence[Worker]) -> CorePool:
    """Containers of so many cores on these workers, one entry each."""
    lanes = []
    for step, need in zip(demand.steps, demand.needs, strict=True):
        allowed = sum(1 for worker in chosen if not step.pinned or worker.id in step.pinned)
        lanes.append(allowed * (cores // need.cores))
    return CorePool(cores * len(chosen), lanes)


def _size_resident(demand: Demand, members: Sequence[int], problem: Problem) -> ExecutorShape:
    """One container on each of the fewest workers, in order, that hold everything at once; else several on some."""
    workers, room = problem.arrays.workers, problem.arrays.room
    schedule = schedule_residents(members, problem)
    # Cheap, and before anything is dealt: a search tries many groups that are too large.
    if schedule.cores > room.cores or sum_resident_memory(demand) > room.memory_mb:
        raise explain_refusal(demand, workers)
    short = None
    # The fewest workers first: what is resident holds them for ever, and each container costs its padding.
    for count in range(-(-schedule.cores // room.most_cores), len(workers) + 1):
        shape = _try_one_each(demand, schedule, workers, count)
        if shape is not None and not (room.has_disk_limits and _find_short_disk(shape, demand, workers)):
            return shape
        # Disk alone was short: of all refusals that is the one to tell, if nothing else fits either.
        short = short or shape
    unlike = _try_several_a_worker(demand, schedule, workers)
    if unlike is not None:
        return unlike
    if short is None:
        raise explain_refusal(demand, workers)
    return short


def _try_one_each(
    demand: Demand, schedule: GroupSchedule, workers: Sequence[Worker], count: int
) -> ExecutorShape | None:
    """Equal containers on so many workers, cores dealt evenly; None where they do not fit. Disk is not looked at."""
    roomy = select_roomy(demand, workers, count)
    chosen = choose_workers(demand, roomy, None, count) if len(roomy) >= count else ()
    if not chosen:
        return None
    shares = deal_instances(demand, _list_ids(chosen))
    required = [share.sum_required(demand, 0) for share in shares]
    cores, memory = max(one.cores for one in required), max(one.memory_mb for one in required)
    if not all(cores <= worker.free_cores and memory <= worker.free_memory_mb for worker in chosen):
        return None
    # More containers than instances: those that were dealt nothing are not asked for.
    used = tuple(worker.id for worker, share in zip(chosen, shares, strict=True) if share.instances)
    return ExecutorShape(demand.residency, demand.slots, cores, memory, (), used, schedule, "", _is_pinned(demand))


def _is_pinned(demand: Demand) -> bool:
    return any(step.pinned for step in demand.steps)


def _list_shares(shape: ExecutorShape, demand: Demand) -> Sequence[Share]:
    """What each container holds."""
    return shape.dealt or deal_instances(demand, shape.workers)


def _find_short_disk(shape: ExecutorShape, demand: Demand, workers: Sequence[Worker]) -> tuple[Worker, int] | None:
    """See ``find_first_short``."""
    known = {worker.id: worker for worker in workers}
    return find_first_short([known[place] for place in shape.workers], _list_shares(shape, demand))


def _try_several_a_worker(demand: Demand, schedule: GroupSchedule, workers: Sequence[Worker]) -> ExecutorShape | None:
    """Equal containers, several on the larger of unlike workers; None where that does not fit, either.

    Where some step is pinned, or disk is scarce, what is in a container decides where it may be: then it stays there.
    """
    steps = (
        # With the needs resolved and the order fixed: the placement's own defaults and order of steps must not
        # decide.
        msgspec.structs.replace(step, cores=need.cores, memory_mb=need.memory_mb, disk_mb=need.disk_mb, order=at)
        for at, (step, need) in enumerate(zip(demand.steps, demand.needs, strict=True))
    )
    part = Dataflow(name=demand.group, steps=tuple(steps))
    request = make_request(part, [make_offer(worker) for worker in workers], parse_placement_settings(demand.settings))
    # A search, so it comes last; without one, a 16-core worker beside one of 4 would hold no more than the small one.
    found = find_equal_containers(request, UNLIKE_BUDGET)
    if found is None:
        return None
    shares = [Share([], []) for _ in found.offers]
    for at, (step, need) in enumerate(zip(demand.steps, demand.needs, strict=True)):
        for index, box in enumerate(found.places[at]):
            shares[box].instances.append((step.id, index))
            shares[box].needs.append(need)
    used = [(offer.worker, share) for offer, share in zip(found.offers, shares, strict=True) if share.instances]
    required = [share.sum_required(demand, 0) for _, share in used]
    return ExecutorShape(
        demand.residency,
        demand.slots,
        max(one.cores for one in required),
        max(one.memory_mb for one in required),
        (),
        tuple(worker for worker, _ in used),
        schedule,
        "",
        pinned=_is_pinned(demand) or _is_disk_scarce(shares, workers),
        dealt=tuple(share for _, share in used),
    )


def _deal_disk(shape: ExecutorShape, demand: Demand, workers: Sequence[Worker]) -> ExecutorShape:
    """What each container is dealt decides its disk; raises ``DoesNotFit``."""
    short = _find_short_disk(shape, demand, workers)
    if short:
        worker, needed = short
        what = f"group {demand.group!r}"  # else first fit keeps to the limit when the group starts
        raise DoesNotFit(what, "disk of its containers", needed, worker.free_disk_mb or 0, "MiB", worker.id)
    return shape._replace(disk_mb=tuple(share.disk_mb for share in _list_shares(shape, demand)))


def _is_disk_scarce(shares: Sequence[Share], workers: Sequence[Worker]) -> bool:
    """Whether some worker has less than all containers together need."""
    needed = sum(share.disk_mb for share in shares)
    return any(worker.free_disk_mb is not None and worker.free_disk_mb < needed for worker in workers)


def _list_ids(workers: Sequence[Worker]) -> list[str]:
    return [worker.id for worker in workers]


def _refuse_pins(demand: Demand, workers: Sequence[Worker]) -> None:
    pinned = [step for step in demand.steps if step.pinned]
    known = {worker.id for worker in workers} if pinned else set()
    for step in pinned:
        if known.isdisjoint(step.pinned):
            raise DoesNotFit(f"step {step.id!r}", "workers it is pinned to", 1, 0)
