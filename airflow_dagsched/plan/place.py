"""The pass that gives each group its containers, on which workers, holding what, and when it is predicted to run."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.cost import DIGITS, price
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.inside import longest_path
from airflow_dagsched.plan.launch_order import in_best_order
from airflow_dagsched.plan.left import left_by
from airflow_dagsched.plan.queue import Span
from airflow_dagsched.plan.shape import Shape
from airflow_dagsched.plan.values import Container, Driver, Group, Instance, Limit, Plan, Times

LOCAL_DRIVER_CORES = 0
"""The one container of a local group is its driver, which asks for nothing on top."""


def placed(made: Plan, given: Given) -> Plan:
    """The plan with containers and times of its groups, its makespan and its lower bound; raises ``DoesNotFit``."""
    given = left_by(made, given)
    graph = given.graph
    first = {group.id: min(graph.index[step] for step in group.steps) for group in made.groups}
    home = list(range(len(graph.ids)))
    for group in made.groups:
        for step in group.steps:
            home[graph.index[step]] = first[group.id]
    priced = None if given.settings.failures_per_hour else given.work.chosen.get(tuple(home))
    priced = priced or in_best_order(price(home, given, failures=False), given, failures=False)
    makespan = priced.cost.makespan_s
    bound = min(makespan, round(given.bound, DIGITS))
    groups = (
        _placed(group, priced.shapes.get(node), priced.spans[node], _told(priced.times[node]), given)
        for group, node in zip(made.groups, first.values(), strict=True)
    )
    return replace(
        made,
        groups=tuple(groups),
        makespan_s=makespan,
        lower_bound_s=bound,
        lower_bound_reason=given.bound_reason,
        gap=round(makespan / bound - 1, DIGITS) if bound else 0.0,
    )


def _placed(group: Group, shape: Shape | None, span: Span, time: Times, given: Given) -> Group:
    if shape is None:
        return replace(group, start_s=round(span.start_s, DIGITS), end_s=round(span.end_s, DIGITS), time=time)
    workers = [given.work.workers[at].id for at in span.places]
    containers = _containers(group.id, shape, workers)
    return replace(
        group,
        start_s=round(span.start_s, DIGITS),
        end_s=round(span.end_s, DIGITS),
        time=time,
        finish_spread_s=round(shape.inside.spread_s, DIGITS),
        residency=shape.demand.residency,
        slots=shape.slots,
        limit=_limit(group, shape, given),
        containers=containers,
        driver=_driver(containers, given.cluster),
    )


def _containers(group: str, shape: Shape, workers: Sequence[str]) -> tuple[Container, ...]:
    shares = shape.shares(workers)
    return tuple(
        Container(
            id=f"{group}/{at}",
            worker=worker,
            instances=_ordered(share.instances, shape),
            required=share.required(shape.demand, shape.cores),
            cores=shape.cores,
            memory_mb=shape.memory_mb,
            disk_mb=shape.disk_mb[at] if shape.disk_mb else share.disk_mb,
        )
        for at, (worker, share) in enumerate(zip(workers, shares, strict=True))
    )


def _ordered(instances: Sequence[Instance], shape: Shape) -> tuple[Instance, ...]:
    """In the group's order, in which they are dealt unless some are pinned: those come first."""
    if not shape.pinned:
        return tuple(instances)
    rank = {step.id: at for at, step in enumerate(shape.demand.steps)}
    return tuple(sorted(instances, key=lambda instance: (rank[instance[0]], instance[1])))


def _driver(containers: Sequence[Container], cluster: Cluster) -> Driver:
    if cluster.manager != "local":
        return Driver()
    return Driver(worker=containers[0].worker, cores=LOCAL_DRIVER_CORES, memory_mb=0)


def _limit(group: Group, shape: Shape, given: Given) -> Limit:
    """Why the group does not compute sooner."""
    if shape.demand.residency == "all":
        return "longest step"
    members = [given.graph.index[step] for step in group.steps]
    whole = len(members) == len(given.graph.ids)
    if shape.inside.compute_s <= (max(given.work.tail) if whole else longest_path(members, given)) * (1 + 1e-9):
        return "critical path"
    if shape.short_of == "memory":
        return "memory"
    return "cores" if shape.short_of == "cores" else "slots"


def _told(times: Times) -> Times:
    return Times(
        start=round(times.start, DIGITS),
        compute=round(times.compute, DIGITS),
        read=round(times.read, DIGITS),
        write=round(times.write, DIGITS),
    )
