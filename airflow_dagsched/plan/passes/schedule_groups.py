"""The pass that gives each group its containers, on which workers, holding what, and when it is predicted to run.

    groups {a b} {c}      w1 ▐a b 4 cores▌              one time line for all groups: each has the containers of its
                          w2            ▐c 2 cores▌     executor shape, on workers that are free when it starts

Words. A *shape* is what a group asks of the cluster, a *span* is when and on which workers it runs.

Guarantee. At no time do containers hold more than a worker has. Times are those without failures: a plan says what is
to be seen, though groups were compared with the failures to expect.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.ranges import MOST_PLANNED
from airflow_dagsched.model.units import DIGITS, MIB
from airflow_dagsched.plan.costing.demand import Demand, Share, deal_instances, make_demand
from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping
from airflow_dagsched.plan.costing.executor_shape import ExecutorShape
from airflow_dagsched.plan.costing.launch_order import search_launch_order
from airflow_dagsched.plan.costing.list_schedule import measure_longest_path
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.passes.exclusions import find_first_step
from airflow_dagsched.plan.plan_types import Compared, Container, Driver, Group, Instance, Limit, Resources, Times
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.reasons.bounds import is_exact_proof
from airflow_dagsched.plan.report.sentences import say_bound

LOCAL_DRIVER_CORES = 0
"""The one container of a local group is its driver, which asks for nothing on top."""
ANYWHERE = Driver()


def schedule_groups(draft: Draft) -> Draft:
    """The draft with containers and times of its groups, its makespan and its lower bound; raises ``DoesNotFit``."""
    problem, plan = draft.remaining, draft.plan
    # Groups are looked up by their first step: evaluations know no names.
    firsts = [find_first_step(group, problem.graph) for group in plan.groups]
    evaluated = _evaluate_plan(draft, firsts)
    makespan_s = evaluated.cost.makespan_s
    bound_s = min(makespan_s, round(draft.bound.seconds, DIGITS))
    maker = _ContainerMaker(problem)
    pairs = zip(plan.groups, firsts, strict=True)
    scheduled = replace(
        plan,
        groups=tuple([_schedule_group(group, first, evaluated, maker) for group, first in pairs]),
        makespan_s=makespan_s,
        lower_bound_s=bound_s,
        lower_bound_reason=say_bound(draft.bound.reason),
        lower_bound_proof="exact" if is_exact_proof(draft.bound.reason) else UNSET,
        gap=round(makespan_s / bound_s - 1, DIGITS) if bound_s else 0.0,
    )
    if draft.remaining is not draft.problem:
        scheduled = replace(scheduled, compared=_compare_remaining(draft, firsts, evaluated))
    return replace(draft, plan=scheduled)


def _evaluate_plan(draft: Draft, firsts: Sequence[int]) -> EvaluatedGrouping:
    """The groups of the plan as they are if nothing fails, launched in the best order.

    They were compared with the failures to expect: only without those is what was compared what is predicted.
    """
    # What was chosen was timed without failures: it need not be simulated again.
    if draft.chosen is not None and not draft.problem.settings.failures_per_hour:
        return draft.chosen
    return _evaluate_groups(draft, firsts, failures=False)


def _compare_remaining(draft: Draft, firsts: Sequence[int], evaluated: EvaluatedGrouping) -> tuple[Compared, ...]:
    """What was compared, the chosen grouping with the time and cores of what remains of it; the others as they were."""
    if not draft.plan.compared:
        return ()
    chosen, *others = draft.plan.compared
    fails = bool(draft.problem.settings.failures_per_hour)
    cost = (_evaluate_groups(draft, firsts, failures=True) if fails else evaluated).cost
    told = replace(
        chosen,
        makespan_s=min(cost.makespan_s, MOST_PLANNED),
        core_seconds=min(cost.core_seconds, MOST_PLANNED),
    )
    return told, *others


def _evaluate_groups(draft: Draft, firsts: Sequence[int], *, failures: bool) -> EvaluatedGrouping:
    group_of = list(range(len(draft.remaining.graph.ids)))
    for group, first in zip(draft.plan.groups, firsts, strict=True):
        for step in group.steps:
            group_of[draft.remaining.graph.index[step]] = first
    evaluated = draft.evaluator.evaluate_grouping(group_of, failures=failures)
    return search_launch_order(evaluated, draft.evaluator, failures=failures)


def _schedule_group(group: Group, first: int, evaluated: EvaluatedGrouping, maker: _ContainerMaker) -> Group:
    shape, span, problem, rounded = evaluated.shapes.get(first), evaluated.spans[first], maker.problem, maker.rounded
    if shape is None:
        return replace(group, start_s=rounded[span.start_s], end_s=rounded[span.end_s])
    members, idle = evaluated.members[first], problem.exclusions.idle_steps
    steps = [node for node in members if node not in idle] if idle else members
    workers = [problem.arrays.workers[at].id for at in span.at_workers]
    make_of_step = len(steps) == 1 and not shape.dealt
    containers = (
        maker.make_of_step(group.id, steps[0], shape, workers)
        if make_of_step
        else maker.make_containers(group.id, steps, shape, workers)
    )
    return replace(
        group,
        start_s=rounded[span.start_s],
        end_s=rounded[span.end_s],
        time=_measure_times(shape, evaluated.traffic.read[first], evaluated.traffic.written[first], maker),
        finish_spread_s=rounded[shape.schedule.spread_s],
        begins=shape.schedule.name_begins([problem.graph.ids[node] for node in steps]),
        residency=shape.residency,
        slots=shape.slots,
        limit=_find_limit(members, shape, problem),
        containers=containers,
        driver=_choose_driver(containers, problem.cluster),
    )


class _Rounded(dict[float, float]):
    """Seconds as they are told; many groups start when others end, or take as long."""

    def __missing__(self, seconds: float) -> float:
        self[seconds] = rounded = round(seconds, DIGITS)
        return rounded


class _ContainerMaker(Struct, frozen=True):
    """Makes the containers of groups."""

    problem: Problem
    rounded: _Rounded = field(default_factory=_Rounded)
    required: dict[tuple[int, int, int], Resources] = field(default_factory=dict)
    """Of a container with so many instances of one step, by its kind, for so many cores: many groups are alike."""

    def make_containers(
        self, group: str, steps: Sequence[int], shape: ExecutorShape, workers: Sequence[str]
    ) -> tuple[Container, ...]:
        """On these workers, with all instances of the steps."""
        demand = make_demand(group, steps, self.problem)
        # Where the shape was found by dealing in another way, that deal is what was found to fit.
        shares = shape.dealt or deal_instances(demand, workers)
        return tuple(
            Container(
                id=f"{group}/{at}",
                worker=worker,
                instances=_order_instances(share.instances, shape, demand),
                required=share.sum_required(demand, shape.cores),
                cores=shape.cores,
                memory_mb=shape.memory_mb,
                disk_mb=shape.disk_mb[at] if shape.disk_mb else share.disk_mb,
            )
            for at, (worker, share) in enumerate(zip(workers, shares, strict=True))
        )

    def make_of_step(
        self, group: str, node: int, shape: ExecutorShape, workers: Sequence[str]
    ) -> tuple[Container, ...]:
        """The same of one step: dealing its instances goes round the containers."""
        step, maker = self.problem.graph.steps[node], []
        for box, worker in enumerate(workers):
            instances = tuple([(step.id, at) for at in range(box, step.parallelism, len(workers))])
            required = self._find_required(node, len(instances), shape.cores)
            maker.append(
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
        return tuple(maker)

    def _find_required(self, node: int, instances: int, cores: int) -> Resources:
        arrays = self.problem.arrays
        # Steps of one kind need the same: a plan of thousands of groups has a few dozen of these.
        key = arrays.kind[node], instances, cores
        if key not in self.required:
            share = Share([], [arrays.needs[node]] * instances)
            self.required[key] = share.sum_required(make_demand("", (node,), self.problem), cores)
        return self.required[key]


def _order_instances(instances: Sequence[Instance], shape: ExecutorShape, demand: Demand) -> tuple[Instance, ...]:
    """In the group's order, in which they are dealt unless some are pinned: those come first."""
    if not shape.pinned:
        return tuple(instances)
    rank = {step.id: at for at, step in enumerate(demand.steps)}
    return tuple(sorted(instances, key=lambda instance: (rank[instance[0]], instance[1])))


def _choose_driver(containers: Sequence[Container], cluster: Cluster) -> Driver:
    if cluster.manager != "local":
        return ANYWHERE
    return Driver(worker=containers[0].worker, cores=LOCAL_DRIVER_CORES, memory_mb=0)


def _find_limit(members: Sequence[int], shape: ExecutorShape, problem: Problem) -> Limit:
    """Why the group does not compute sooner."""
    if shape.residency == "all":
        return "longest step"
    whole = len(members) == len(problem.graph.ids)
    if shape.schedule.compute_s <= (max(problem.arrays.tail_s) if whole else measure_longest_path(members, problem)) * (
        1 + 1e-9
    ):
        return "critical path"
    if shape.short_of == "memory":
        return "memory"
    return "cores" if shape.short_of == "cores" else "slots"


def _measure_times(shape: ExecutorShape, read: int, written: int, maker: _ContainerMaker) -> Times:
    cluster, rounded = maker.problem.cluster, maker.rounded
    rate = cluster.spill_mb_s * MIB
    return Times(
        start=rounded[cluster.application_start_s],
        compute=rounded[shape.schedule.compute_s],
        read=rounded[read / rate],
        write=rounded[written / rate],
    )
