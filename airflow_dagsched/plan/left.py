"""Pruning among the passes: what a group asks for is made of what is left of it.

    grouped ──pruned──> what each group leaves out ──placed──> containers of what is left ──trimmed──> fewer

The groups stay as they are: whose launch task a step is in is not decided anew for each run. The workers that hold the
data may be too small: a group that does not fit there keeps them all. A wrong guess costs time, it never refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.plan.bound import Bound, lower_bound
from airflow_dagsched.plan.demand import Demand, Share, demand_of
from airflow_dagsched.plan.given import WHOLE, Given, Left
from airflow_dagsched.plan.prune import prune, remaining, trim
from airflow_dagsched.plan.shape import Shape, shape_of
from airflow_dagsched.plan.values import Container, Group, Plan, Pruned
from airflow_dagsched.plan.work import work_of

UNCOUNTED = 1e12
"""MiB a second: bytes take no time."""


def pruned(made: Plan, given: Given) -> Plan:
    """The plan, each group with what it leaves out; as it is where nothing is known of what the steps read."""
    if not _has_inputs(given):
        return made
    settings, selections = given.settings, given.selections
    found = prune(made, given.declared, given.cluster, given.asked, selections=selections, settings=settings)
    after = left_by(found, given)
    return replace(found, groups=tuple(_roomy(group, after) for group in found.groups))


def trimmed(made: Plan, given: Given) -> Plan:
    """The placed plan without instances to which no rows come; the containers need what is left in them."""
    if not _has_inputs(given):
        return made
    found = trim(made, given.declared, given.cluster, given.asked, selections=given.selections)
    pairs = zip(made.groups, found.groups, strict=True)
    return replace(made, groups=tuple(now if now is was else _resized(now, given) for was, now in pairs))


def left_by(made: Plan, given: Given) -> Given:
    """What is given once the groups have left out what they do: fewer and narrower steps, fewer workers."""
    if not any(one.what != "partition" for group in made.groups for one in group.pruned):
        return given
    key = tuple((group.steps, group.pruned) for group in made.groups)
    if key not in given.work.left:
        given.work.left[key] = _left_by(made, given)
    return given.work.left[key]


def _left_by(made: Plan, given: Given) -> Given:
    workers, counts, only = given.work.workers, dict[str, int](), dict[int, frozenset[str]]()
    for group in made.groups:
        found, there = remaining(group, given.graph, workers)
        counts |= found
        if len(there) < len(workers):
            only[_first(group, given.graph)] = frozenset(worker.id for worker in there)
    idle = frozenset(node for node, step in enumerate(given.graph.steps) if step.id not in counts)
    declared = _narrowed(given.declared, counts)
    work = work_of(declared, given.cluster, given.settings, idle)
    after = replace(
        given,
        graph=declared if given.graph is given.declared else _narrowed(given.graph, counts),
        declared=declared,
        work=replace(work, order=given.work.order),  # in which the groups' steps stand
        left=Left(idle, only),
    )
    bound = _bound(after)
    return replace(after, bound=bound.seconds, bound_reason=bound.why)


def _bound(given: Given) -> Bound:
    """Where steps are left out, starts and spills may be, too: then only what steps compute counts."""
    free = replace(given.cluster, application_start_s=0.0, spill_mb_s=UNCOUNTED)
    return lower_bound(replace(given, cluster=free) if given.left.idle else given)


def shape_left(first: int, name: str, given: Given, running: Sequence[int]) -> Shape:
    """The shape of the group ``name`` with first step ``first``, of which ``running`` is left.

    Raises ``DoesNotFit``, of a group with workers left out if it does not fit on the others.
    """
    only = given.left.workers.get(first)
    if only is None:
        return shape_of(name, running, given)
    workers = tuple(worker for worker in given.work.workers if worker.id in only)
    there = replace(given, work=replace(given.work, workers=workers, shapes={}, lone={}, alone={}))
    return shape_of(name, running, there)._replace(pinned=True)


def _has_inputs(given: Given) -> bool:
    """Whether anything is known, or at least named, of what steps read from outside."""
    asked = given.asked
    return bool(asked.empty or asked.idle or asked.stored) or any(step.sources for step in given.graph.steps)


def _first(group: Group, graph: Graph) -> int:
    return min(graph.index[step] for step in group.steps)


def _narrowed(graph: Graph, counts: dict[str, int]) -> Graph:
    """With as many instances of each step as are left; of one that is left out they do not matter."""
    return replace(graph, steps=tuple(_narrow(step, counts) for step in graph.steps))


def _narrow(step: Step, counts: dict[str, int]) -> Step:
    count = counts.get(step.id, step.parallelism)
    return step if count == step.parallelism else replace(step, parallelism=count)


def _roomy(group: Group, given: Given) -> Group:
    """The group with all workers, and why, where it does not fit on those it needs."""
    if given.left is WHOLE or not any(one.what == "worker" for one in group.pruned):
        return group
    running = [given.graph.index[step] for step in group.steps if given.graph.index[step] not in given.left.idle]
    try:
        shape_left(_first(group, given.graph), group.id, given, running)
    except DoesNotFit as refused:
        stays = Pruned(what="worker", id=group.id, reason=f"does not fit on the workers that hold the data: {refused}")
        kept = tuple(one for one in group.pruned if one.what != "worker")
        return replace(group, pruned=kept, unpruned=(*group.unpruned, stays))
    return group


def _resized(group: Group, given: Given) -> Group:
    steps = [given.graph.index[step] for step in group.steps]
    return replace(group, containers=tuple(_sized(group, demand_of(group.id, steps, given), given)))


def _sized(group: Group, demand: Demand, given: Given) -> Iterator[Container]:
    for box in group.containers:
        needs = [given.work.needs[given.graph.index[step]] for step, _ in box.instances]
        needed = Share(list(box.instances), needs).required(demand, box.cores)
        yield replace(box, required=needed, disk_mb=min(box.disk_mb, needed.disk_mb))
