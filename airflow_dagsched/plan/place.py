"""The pass that gives each group its containers, on which workers, holding what, and when it is predicted to run."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.cost import DIGITS, Priced, price
from airflow_dagsched.plan.demand import Demand, Share, deal, demand_of
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.inside import longest_path
from airflow_dagsched.plan.launches.order import in_best_order
from airflow_dagsched.plan.left import left_by
from airflow_dagsched.plan.shape import Shape
from airflow_dagsched.plan.values import Container, Driver, Group, Instance, Limit, Plan, Resources, Times
from airflow_dagsched.plan.work import MIB

LOCAL_DRIVER_CORES = 0
"""The one container of a local group is its driver, which asks for nothing on top."""
ANYWHERE = Driver()


def placed(made: Plan, given: Given) -> Plan:
    """The plan with containers and times of its groups, its makespan and its lower bound; raises ``DoesNotFit``."""
    given = left_by(made, given)
    graph = given.graph
    firsts, home = [], list(range(len(graph.ids)))
    for group in made.groups:
        nodes = [graph.index[step] for step in group.steps]
        firsts.append(min(nodes))
        for node in nodes:
            home[node] = firsts[-1]
    priced = None if given.settings.failures_per_hour else given.work.chosen.get(tuple(home))
    priced = priced or in_best_order(price(home, given, failures=False), given, failures=False)
    makespan = priced.cost.makespan_s
    bound = min(makespan, round(given.bound, DIGITS))
    boxes = _Boxes(given)
    return replace(
        made,
        groups=tuple([_placed(group, first, priced, boxes) for group, first in zip(made.groups, firsts, strict=True)]),
        makespan_s=makespan,
        lower_bound_s=bound,
        lower_bound_reason=given.bound_reason,
        gap=round(makespan / bound - 1, DIGITS) if bound else 0.0,
    )


def _placed(group: Group, first: int, priced: Priced, boxes: _Boxes) -> Group:
    shape, span, given, told = priced.shapes.get(first), priced.spans[first], boxes.given, boxes.told
    if shape is None:
        return replace(group, start_s=told[span.start_s], end_s=told[span.end_s])
    members, idle = priced.members[first], given.left.idle
    steps = [node for node in members if node not in idle] if idle else members
    workers = [given.work.workers[at].id for at in span.places]
    alone = len(steps) == 1 and not shape.dealt
    containers = boxes.alone(group.id, steps[0], shape, workers) if alone else boxes.of(group.id, steps, shape, workers)
    return replace(
        group,
        start_s=told[span.start_s],
        end_s=told[span.end_s],
        time=_times(shape, priced.traffic.read[first], priced.traffic.written[first], boxes),
        finish_spread_s=told[shape.inside.spread_s],
        residency=shape.residency,
        slots=shape.slots,
        limit=_limit(members, shape, given),
        containers=containers,
        driver=_driver(containers, given.cluster),
    )


class _Told(dict[float, float]):
    """Seconds as they are told; many groups start when others end, or take as long."""

    def __missing__(self, seconds: float) -> float:
        self[seconds] = told = round(seconds, DIGITS)
        return told


class _Boxes(Struct, frozen=True):
    """Makes the containers of groups."""

    given: Given
    told: _Told = field(default_factory=_Told)
    required: dict[tuple[int, int, int], Resources] = field(default_factory=dict)
    """Of a container with so many instances of one step, by its kind, for so many cores: many groups are alike."""

    def of(self, group: str, steps: Sequence[int], shape: Shape, workers: Sequence[str]) -> tuple[Container, ...]:
        """On these workers, with all instances of the steps."""
        demand = demand_of(group, steps, self.given)
        shares = shape.dealt or deal(demand, workers)
        return tuple(
            Container(
                id=f"{group}/{at}",
                worker=worker,
                instances=_ordered(share.instances, shape, demand),
                required=share.required(demand, shape.cores),
                cores=shape.cores,
                memory_mb=shape.memory_mb,
                disk_mb=shape.disk_mb[at] if shape.disk_mb else share.disk_mb,
            )
            for at, (worker, share) in enumerate(zip(workers, shares, strict=True))
        )

    def alone(self, group: str, node: int, shape: Shape, workers: Sequence[str]) -> tuple[Container, ...]:
        """The same of one step: dealing its instances goes round the containers."""
        step, boxes = self.given.graph.steps[node], []
        for box, worker in enumerate(workers):
            instances = tuple([(step.id, at) for at in range(box, step.parallelism, len(workers))])
            required = self._required(node, len(instances), shape.cores)
            boxes.append(
                Container(
                    id=f"{group}/{box}",
                    worker=worker,
                    instances=instances,
                    required=required,
                    cores=shape.cores,
                    memory_mb=shape.memory_mb,
                    disk_mb=shape.disk_mb[box] if shape.disk_mb else required.disk_mb,
                )
            )
        return tuple(boxes)

    def _required(self, node: int, instances: int, cores: int) -> Resources:
        work = self.given.work
        key = work.kind[node], instances, cores
        if key not in self.required:
            share = Share([], [work.needs[node]] * instances)
            self.required[key] = share.required(demand_of("", (node,), self.given), cores)
        return self.required[key]


def _ordered(instances: Sequence[Instance], shape: Shape, demand: Demand) -> tuple[Instance, ...]:
    """In the group's order, in which they are dealt unless some are pinned: those come first."""
    if not shape.pinned:
        return tuple(instances)
    rank = {step.id: at for at, step in enumerate(demand.steps)}
    return tuple(sorted(instances, key=lambda instance: (rank[instance[0]], instance[1])))


def _driver(containers: Sequence[Container], cluster: Cluster) -> Driver:
    if cluster.manager != "local":
        return ANYWHERE
    return Driver(worker=containers[0].worker, cores=LOCAL_DRIVER_CORES, memory_mb=0)


def _limit(members: Sequence[int], shape: Shape, given: Given) -> Limit:
    """Why the group does not compute sooner."""
    if shape.residency == "all":
        return "longest step"
    whole = len(members) == len(given.graph.ids)
    if shape.inside.compute_s <= (max(given.work.tail) if whole else longest_path(members, given)) * (1 + 1e-9):
        return "critical path"
    if shape.short_of == "memory":
        return "memory"
    return "cores" if shape.short_of == "cores" else "slots"


def _times(shape: Shape, read: int, written: int, boxes: _Boxes) -> Times:
    cluster, told = boxes.given.cluster, boxes.told
    rate = cluster.spill_mb_s * MIB
    return Times(
        start=told[cluster.application_start_s],
        compute=told[shape.inside.compute_s],
        read=told[read / rate],
        write=told[written / rate],
    )
