"""The pass that gives each group its containers: how many, how large, on which workers, holding what.

    slots residency (batch)                     all residency (streaming)
    w1 [c c c c][c c c c]  w2 [c c c c]         w1 [c c c c c c]  w2 [c c c c c c]
    instances run in waves: a container has     instances stay: a container has the sum of what it
    the memory of its largest so many           holds; the fewest workers that have room

First fit over the workers in natural order; no policy beyond that. All containers of a group are equal in
cores and memory, since a Spark application has one executor shape. Cores of a container shrink until its
memory fits: fewer instances at once are slower, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import levels, natural_key
from airflow_dagsched.placement.equal import equal_containers
from airflow_dagsched.placement.request import request_of
from airflow_dagsched.placement.values import offer_of
from airflow_dagsched.plan.demand import Demand, Share, containers_for, deal, demand_of
from airflow_dagsched.plan.fit import places, refusal, some_fit
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.needs import padding
from airflow_dagsched.plan.settings_file import placement_settings
from airflow_dagsched.plan.values import Container, Driver, Group, Plan

LOCAL_DRIVER_CORES = 0
"""The one container of a local group is its driver, which asks for nothing on top."""


def sized(made: Plan, given: Given) -> Plan:
    """The plan with the containers of each group; raises ``DoesNotFit``."""
    widths = _widths(made, given.graph)
    workers = sorted(given.cluster.workers, key=lambda worker: natural_key(worker.id))
    return replace(made, groups=tuple(_sized(group, widths[group.id], workers, given) for group in made.groups))


def _widths(made: Plan, graph: Graph) -> dict[str, int]:
    """For each group the most steps on one level of the whole graph: so many could run side by side."""
    level = levels(graph.condensed, graph.order)
    found: dict[str, int] = {}
    for group in made.groups:
        counts: dict[int, int] = {}
        for step in group.steps:
            node = graph.index[step]
            if graph.loop[node] == node:
                counts[level[node]] = counts.get(level[node], 0) + 1
        found[group.id] = max(counts.values())
    return found


def _sized(group: Group, width: int, workers: Sequence[Worker], given: Given) -> Group:
    steps = [given.graph.steps[given.graph.index[step]] for step in group.steps]
    demand = demand_of(group.id, steps, width, given.settings)
    _refuse_pins(demand, workers)
    resident = demand.residency == "all"
    containers = _resident(demand, workers) if resident else _in_slots(demand, workers, given.cluster)
    _refuse_disk(containers, workers)
    return replace(
        group,
        residency=demand.residency,
        slots=demand.slots,
        containers=containers,
        driver=_driver(containers, given.cluster),
    )


def _driver(containers: Sequence[Container], cluster: Cluster) -> Driver:
    if cluster.manager != "local":
        return Driver()
    return Driver(worker=containers[0].worker, cores=LOCAL_DRIVER_CORES, memory_mb=0)


def _in_slots(demand: Demand, workers: Sequence[Worker], cluster: Cluster) -> tuple[Container, ...]:
    """The largest shape, within the settings, that some worker has room for."""
    for cores in _shapes(demand, workers, cluster):
        memory = demand.memory_at_once(cores)
        count = 1 if cluster.manager == "local" else containers_for(demand, cores)
        chosen = places(demand, workers, (cores, memory + padding(memory, demand.settings)), count)
        if chosen:
            return _containers(demand, chosen, cores)
    raise refusal(demand, workers)


def _shapes(demand: Demand, workers: Sequence[Worker], cluster: Cluster) -> Iterator[int]:
    """Cores of a container, most first. A local application has all the cores there are."""
    least = demand.most_cores()
    most = max((worker.free_cores for worker in workers), default=0)
    if cluster.manager != "local":
        most = min(most, max(least, min(demand.settings.container_cores, demand.wanted_cores())))
    return iter(range(most, least - 1, -1))


def _resident(demand: Demand, workers: Sequence[Worker]) -> tuple[Container, ...]:
    """One container on each of the fewest workers, in order, that hold everything at once."""
    for count in range(1, len(workers) + 1):
        roomy = some_fit(demand, workers, count)
        chosen = places(demand, roomy, None, count) if len(roomy) >= count else ()
        made = _containers(demand, chosen, 0) if chosen else ()
        room = {worker.id: worker for worker in chosen}
        if made and all(_has_room(container, room[container.worker]) for container in made):
            return made
    unlike = _several_a_worker(demand, workers)
    if not unlike:
        raise refusal(demand, workers)
    return unlike


def _several_a_worker(demand: Demand, workers: Sequence[Worker]) -> tuple[Container, ...]:
    """Equal containers, several on the larger of unlike workers; none if that does not fit, either."""
    steps = (
        replace(step, cores=need.cores, memory_mb=need.memory_mb, disk_mb=need.disk_mb, order=at)
        for at, (step, need) in enumerate(zip(demand.steps, demand.needs, strict=True))
    )
    part = Dataflow(name=demand.group, steps=tuple(steps))
    request = request_of(part, [offer_of(worker) for worker in workers], placement_settings(demand.settings))
    found = equal_containers(request)
    if found is None:
        return ()
    known = {worker.id: worker for worker in workers}
    shares = [(known[offer.worker], Share([], [])) for offer in found.offers]
    for at, (step, need) in enumerate(zip(demand.steps, demand.needs, strict=True)):
        for index, box in enumerate(found.places[at]):
            shares[box][1].instances.append((step.id, index))
            shares[box][1].needs.append(need)
    return _of_shares(demand, shares, 0)


def _has_room(container: Container, worker: Worker) -> bool:
    return container.cores <= worker.free_cores and container.memory_mb <= worker.free_memory_mb


def _containers(demand: Demand, chosen: Sequence[Worker], cores: int) -> tuple[Container, ...]:
    """Equal in cores and memory; cores 0: as many as the fullest holds. One that is dealt nothing is left out."""
    dealt = deal(demand, [worker.id for worker in chosen])
    return _of_shares(demand, list(zip(chosen, dealt, strict=True)), cores)


def _of_shares(demand: Demand, dealt: Sequence[tuple[Worker, Share]], cores: int) -> tuple[Container, ...]:
    shares = [(worker, share) for worker, share in dealt if share.instances]
    required = [share.required(demand, cores) for _, share in shares]
    cores = cores or max(needed.cores for needed in required)
    memory = max(needed.memory_mb for needed in required)
    return tuple(
        Container(
            id=f"{demand.group}/{at}",
            worker=worker.id,
            instances=_ordered(demand, share),
            required=needed,
            cores=cores,
            memory_mb=memory,
            disk_mb=needed.disk_mb,
        )
        for at, ((worker, share), needed) in enumerate(zip(shares, required, strict=True))
    )


def _ordered(demand: Demand, share: Share) -> tuple[tuple[str, int], ...]:
    rank = {step.id: at for at, step in enumerate(demand.steps)}
    return tuple(sorted(share.instances, key=lambda instance: (rank[instance[0]], instance[1])))


def _refuse_pins(demand: Demand, workers: Sequence[Worker]) -> None:
    known = {worker.id for worker in workers}
    for step in demand.steps:
        if step.pinned and known.isdisjoint(step.pinned):
            raise DoesNotFit(f"step {step.id!r}", "workers it is pinned to", 1, 0)


def _refuse_disk(containers: Sequence[Container], workers: Sequence[Worker]) -> None:
    for worker in workers:
        needed = sum(container.disk_mb for container in containers if container.worker == worker.id)
        if worker.free_disk_mb is not None and needed > worker.free_disk_mb:
            group = containers[0].id.rpartition("/")[0]
            raise DoesNotFit(f"group {group!r}", f"disk of worker {worker.id!r}", needed, worker.free_disk_mb, "MiB")
